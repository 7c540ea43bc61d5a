"""What acts on what others have or see asks in every mode, since it cannot be undone from here; what only reads there runs unasked where commands do."""

import pytest

from tenure.agent.approval import UNASKED, CallEffect, Mode
from tenure.agent.tools.shell.judge import judge
from tenure.agent.workspace import Workspace

REMOTE = """
curl -X DELETE http://api/x
curl -XPOST http://api/x
curl --request=PUT http://api/x
curl --req PATCH http://api/x
curl -d a=b http://api/x
curl -sd@x http://api/x
curl --json '{}' http://api/x
curl --data-urlencode a=b api/x
curl -F f=@x http://api
curl -T x http://api
curl -sS -Tx http://api
curl -Q 'DELE x' ftp://h
curl ftp://h/x
curl telnet://h:25
curl gopher://h:6379/_FLUSHALL
curl -K cfg
curl -H 'X-HTTP-Method-Override: DELETE' http://api
curl -H @headers http://api
curl http://api --next -X DELETE http://api
curl http://api/$(hostname)
curl --unix-socket /var/run/docker.sock http://d/containers
curl --mail-from a@b smtp://h
wget --post-data=x http://api
wget --method=DELETE http://api
wget --post-file x http://api
wget -e use_proxy=on http://api
http POST api/x
http DELETE api/x
http api/x a=b
http api/x a:=1
xh put api/x
kubectl apply -f x.yaml
kubectl scale deploy x --replicas=0
kubectl -n get delete pod x
kubectl --as get delete pod x
kubectl exec pod -- rm x
kubectl rollout restart deploy/x
kubectl set image deploy/x a=b
kubectl edit svc x
kubectl get --raw /api
k=kubectl; kubectl patch svc x -p '{}'
oc apply -f x
helm upgrade a b
helm install a b
helm push x oci://y
terraform apply
terraform import a b
terraform -chdir=x apply
terraform force-unlock 1
tofu apply
pulumi up -y
aws s3 cp a s3://b
aws s3 sync . s3://b
aws lambda invoke --function-name f out
aws ec2 run-instances
aws dynamodb put-item --table-name t
aws --profile describe ec2 terminate-instances
aws sns publish --message x
gcloud compute instances create x
gcloud compute instances delete list
gcloud app deploy
gcloud run deploy x
az vm create -n x
az group delete -n list
gsutil cp a gs://b
gh api -X DELETE repos/a/b
gh api repos/a/b/issues -f title=x
gh api graphql -f query=x
gh api --input x repos/a
gh pr create --fill
gh pr merge 3
gh issue close 3
gh repo delete a/b
gh release create v1
gh workflow run x
gh secret set X
gh -R pr issue close 3
glab mr create
git push
git push origin main
git -C . push
git send-email x.patch
git svn dcommit
git lfs push origin main
git publish
git p4 submit
npm publish
npm dist-tag add a@1 latest
npm deprecate a x
npm login
npm owner add x y
npm run deploy
npm run release:prod
pnpm publish
yarn publish
yarn npm publish
bun publish
npx vercel --prod
npx -y wrangler deploy
npx @vercel/cli@latest deploy
npx vercel@latest deploy
pnpm dlx netlify deploy
uvx twine upload dist/x
uv run twine upload dist/x
uv publish
python -m twine upload dist/x
poetry publish --build
hatch publish
flit publish
cargo publish
cargo release
cargo yank a
gem push x.gem
twine upload dist/x
docker push a/b
docker login
docker image push a/b
docker buildx build --push .
docker buildx build --output type=registry .
docker -H ssh://h ps
docker --context prod ps
docker compose push
docker service update x
docker stack deploy -c x y
podman push a
rsync -a . host:/srv
rsync -a . rsync://host/x
psql -c 'drop table a'
psql -c 'insert into a values (1)'
psql -c 'select pg_terminate_backend(1)'
psql -c 'select * into b from a'
psql -c 'select 1; delete from a'
psql -f x.sql
psql < x.sql
psql -c 'select 1' -c 'vacuum'
psql -c 'select nextval(1)'
psql
mysql -e 'update a set b=1'
mysql -e 'select 1 into outfile 1'
redis-cli set a b
redis-cli config set a b
redis-cli eval x 0
mongosh --eval 'db.x.drop()'
ssh host uptime
scp a host:b
mail -s x a@b
echo hi | mail -s x a@b
sendmail a@b
msmtp a@b
ansible-playbook x.yml
fly deploy
vercel --prod
vercel
heroku restart
firebase deploy
serverless deploy
vault kv put a b=c
etcdctl put a b
hg push
svn mkdir http://x/y
svn import . http://x
make deploy
make -C x publish
mvn deploy
./gradlew publish
rake release
cd x && env A=b timeout 5 kubectl apply -f x
find . -exec curl -T {} http://x \\;
ls | xargs -n1 aws s3 rm
bash -c 'git push'
hf upload a b
"""

READS = """
curl http://x
curl -fsSL https://x/install -o y
curl -sI -X HEAD https://x
curl -H 'Accept: application/json' -H 'Authorization: Bearer x' https://api/x
curl --retry 3 -m 5 localhost:8000/health
wget -q https://x/y.tar.gz
wget -O y https://x
http localhost:8000/x
http GET api/x a==b
kubectl get pods -A
kubectl -n prod logs x
kubectl --namespace=prod describe pod x
kubectl rollout status deploy/x
helm template .
helm -n x list
terraform plan
terraform state list
terraform -chdir=x validate
pulumi preview
aws s3 ls
aws ec2 describe-instances --region x
aws sts get-caller-identity
gcloud compute instances list
gcloud projects list
az vm list
az account show
gh pr list
gh pr view 3
gh api repos/a/b
gh api -X GET repos/a/b --jq .x
gh run view --log
gh -R a/b issue list
git fetch
git pull --rebase
git commit -m x
git rebase main
git clone https://x/y
git lfs pull
npm ci
npm test
npm run build
npm install x
npx tsc --noEmit
pnpm add x
yarn install
yarn build
cargo build --release
cargo nextest run
gem install x
twine check dist/x
poetry install
uv sync
uv run pytest
pip install twine
python -m pytest
python -m build
docker build -t x .
docker compose up -d
docker run x ls
docker logs x
rsync -a a/ b/
psql -c 'select count(*) from a where b = 1'
psql -d x -c '\\d+ a'
psql -l
mysql -e 'show tables'
redis-cli get a
make
make test
mvn test
./gradlew build
hg commit -m x
svn update
vercel ls
"""


@pytest.mark.parametrize("command", REMOTE.strip().splitlines())
def test_what_acts_elsewhere_asks_in_the_mode_that_allows_all(command: str, ws: Workspace) -> None:
    approval = judge(command, ws)
    assert approval is not None
    assert approval.act not in UNASKED[Mode.ALL]


@pytest.mark.parametrize("command", READS.strip().splitlines())
def test_what_only_reads_elsewhere_or_stays_here_does_not(command: str, ws: Workspace) -> None:
    approval = judge(command, ws)
    assert approval is None or approval.act is CallEffect.COMMAND
