"""More command lines that look like a look and are none, for a folder without keys: those that it could reach lie in `~/proj`. `⏎` is a line's end."""

import subprocess
from pathlib import Path

from shell_attacks import SECRET

_LINES = r"""
tree -Po x out
tree -Io x out
tree -Lo 1 out
xxd -ps a.txt out
xxd -ac a.txt out
strings @list
nm @opts
size @opts
cat {"x y",.env}
sort {'a b',-oout} a.txt
cat {$((1 + 1)),.env}
cat {a\ b,.env}
cat {'a;b',.env}
read y < evil; (x=1); : ${x:=y}; echo $((x))
read y < evil; x=1+y; echo $((x))
read y < evil; x=$((1))+y; echo $((x))
read y < evil; x=1,y; echo $((x))
awk 'BEGIN{for(i=0;i<1;i++) print "x" > "out"}'
gawk 'BEGIN{for(i=0;i<1;i++) print "x" > "out"}'
sed 's,[,],p;s,w out,x,' a.txt
sed '/[/p;s,]/w out,x,' a.txt
find ~ -name id_rsa -exec cat {} +
find ~ -name 'id_*' -exec cat {} \;
find ~/p* -type f | xargs cat
ls -l --time-style=+$HOME/.ssh/id_rsa | xargs cat
git ls-files --format=$HOME/.ssh/id_rsa | xargs cat
git ls-files --format=/proc/self/environ | xargs cat
cat $(dirname ~/.ssh/id_rsa/x)
cat $(dirname ~/proj/id_rsa/x)
ls | grep -l --label="$HOME/.ssh/id_rsa" . | xargs cat
find . | grep -o '/proc.*environ$' | xargs cat
find ./proc/self/environ | tail -c +2 | xargs cat
find ./proc/self/environ | tac -s . | xargs cat
find ./proc/self/environ.x | xargs -d . cat
find ./proc/self/environ | while IFS=. read -r a b; do cat "$b"; done
find ./proc/self/environ | { read -n1 x; read y; cat "$y"; }
git log --format --output=out
git log --min-parents --output=out
git log --max-parents --output=out
git diff --line-prefix --output=out
git config --get --unset user.name
cat .[[:alpha:]]nv
cat .[^x]nv
cat .[[=e=]]nv
x='.[^x]nv'; cat $x
sh -c '[[ a > out ]]'
dash -c '[[ a > out ]]'
sh -c '[[ a < .env ]]'
cat <<~⏎~⏎touch out⏎/home
cat <<{a,b}⏎{a,b}⏎touch out⏎*
cat <<E⏎E\⏎⏎touch out⏎E
cat <<$HOME⏎$HOME⏎touch out⏎/x
cat <<E; cat $(⏎echo a⏎E⏎touch out⏎)
cat ~+/.env
cat ~root/.ssh/id_rsa
cat /proc/thread-self/environ
cat /proc/self/task/../environ
cat /proc/self/../self/environ
cd /proc/self; cat environ
cd /proc && cat self/environ
cd /proc/self/root/etc && cat shadow
cat /run/secrets/x
bash -c 'cat $0' .env
sh -c 'y="a PATH=."; export x=$y; ls'
bash -c '"$@"' x touch out
objdump -S a.o
find . -maxdepth 0 -printf "%p" -quit -fprint0 out
find . '(' -name a.txt -delete ')'
find . -name a.txt -okdir touch out ';'
find ~/proj -type f -exec cat '{}' ';'
find -L . -name x -exec cat {} +
f=~/proj; find $f -type f | xargs cat
for d in ~/proj; do find "$d" -type f | xargs cat; done
cat $(find ~/proj -type f)
cat `ls -d ~/proj/*`
ls ~/proj | xargs -I{} cat ~/proj/{}
cd ~/proj && ls | xargs cat
cd ~/proj; cat *
cat ~/pro?/*
cat ~/pro[j]/*
cat ~/p*/s*
grep -r canary ~/p*
grep -r canary ~/pro[[:alpha:]]
rg canary ~/p*
rg --no-ignore canary ~
diff -r ~/proj .
diff -r . ~/p*
sed -n p ~/proj/server.key
awk 1 ~/proj/id_rsa
awk '{print}' x=1 ~/proj/id_rsa
awk -v f=1 1 a.txt ~/proj/id_rsa
awk 'BEGIN{for(;;){print "x" > "out"; exit}}'
awk 'BEGIN{for(i=0;i<1;i++)for(j=0;j<1;j++)printf "x" >> "out"}'
awk 'BEGIN { print("a")  > ("out") }'
awk 'BEGIN { x = "touch out"; x | getline }'
awk '@load "filefuncs"; BEGIN{}'
gawk -e 'BEGIN{system("touch out")}'
gawk --source 'BEGIN{system("touch out")}'
gawk -i inplace 1 a.txt
gawk -o out 1 a.txt
gawk -d 1 a.txt
gawk -p 1 a.txt
gawk -l filefuncs 1 a.txt
gawk --dump-variables 'BEGIN{}'
awk 'BEGIN{@f("x")}' a.txt
gawk 'BEGIN{f="system"; @f("touch out")}'
gawk 'BEGIN{print PROCINFO["pid"]; for (i in SYMTAB["ENVIRON"]) print SYMTAB["ENVIRON"][i]}'
gawk 'BEGIN{print SYMTAB["ENVIRON"]["CANARY"]}'
awk 'END{print > FILENAME}' a.txt
awk 'BEGIN{if(1>0)print 1>"out"}'
awk 'BEGIN{print 1,2>"out"}'
awk 'BEGIN{print(1)(2)>"out"}'
awk 'BEGIN{a["x"];for(k in a)print k>"out"}'
awk 'BEGIN{do print 1>"out"; while(0)}'
awk 'BEGIN{print -1 " " -1>"out"}'
awk 'BEGIN{print 1>/out/}'
awk 'BEGIN{printf "%s" , "a" > "out" ; print (1>2)}'
awk '{ print /x/ ? "a" : "b" > "out" }' a.txt
awk 'BEGIN{x=1/1; print "a" > "out" /1}'
awk 'BEGIN{print length >"out"}'
awk 'BEGIN{print (1)/2/3 > "out"}'
awk 'BEGIN{i=1; print i++/2 > "out"; /"/}'
mawk 'BEGIN{print "a" > "out"}'
mawk -W exec run.awk
sed -n '$w out' a.txt
sed -n '/x/,$w out' a.txt
sed -n '1!w out' a.txt
sed 'y/a/b/;w out' a.txt
sed -e 'a\' -e 'w out' a.txt
sed -e 's/a/b\' -e 'w out/' a.txt
sed --posix 'w out' a.txt
sed -s -n '/[]/]/p;w out' a.txt
sed 's/[^/]*/x/w out' a.txt
sed 's/\[/x/w out' a.txt
sed 's/[[:alpha:]]*/id/e' a.txt
sed 's|[|]|p;s|w out|x|' a.txt
sed 's/[]/]/p;s/w out/x/' a.txt
sed 's/[[.].]/]/p;s/w out/x/' a.txt
sed 's/\(/x/w out' a.txt
sed 's/a/b/;1{w out' a.txt
sed '{w out
sed -E 's/a/b/gw out' a.txt
sed 'F;W out' a.txt
sed '1~2w out' a.txt
sed -nf run a.txt
sed -n --file=run a.txt
sed --debug -n 'w out' a.txt
sed 's/x/\n/;e touch out' a.txt
sed '0,/x/e touch out' a.txt
sed 's!a!touch out!e' a.txt
sed "s/a/b/\nw out" a.txt
sed $'s/a/b/\nw out' a.txt
sort -k1,1 -o out a.txt
sort -t: -oout a.txt
sort --batch-size=2 -T. a.txt
sort --temporary-directory=. a.txt
sort --random-source=/proc/self/environ -R a.txt
sort -R --random-source /proc/self/environ a.txt
sort --key --output=out a.txt
sort --parallel --output=out a.txt
uniq - out < a.txt
uniq --skip-fields 1 a.txt out
uniq -cw5 a.txt out
xxd -c8 a.txt out
xxd -i a.txt out
xxd -C -i a.txt out
xxd -s 0 -l 1 a.txt out
xxd -len 5 a.txt out
xxd -plain a.txt out
xxd -cols 4 a.txt out
xxd -revert a.txt out
xxd -- a.txt out
tree --noreport -o out .
tree -ao out
tree -aPo x out
tree --sort name -oout
tree -L 1 -fo out
tree -H . -o out
tree --fromfile a.txt -o out
tree -RL 1
tree --filelimit -o out
tree -I x -Po y out
fdfind -x touch out
fdfind --exec touch out
fdfind -X touch out
fdfind . -tf --exec-batch=touch
fdfind -Hx touch out
fdfind a.txt -x touch {.}x
fdfind -HI . ~/proj -x cat
fdfind . ~/proj -x cat {}
fdfind . ~/proj | xargs cat
fdfind -l . | xargs touch
fdfind --base-directory ~/proj . -x cat
fdfind --ignore-file /proc/self/environ
fdfind -E x -x touch out
fdfind --max-results -x touch out
fdfind . . -x sh -c 'touch out'
rg --pre ./run -e x
rg --pre-glob '*' --pre ./run x
rg -e x --search-zip
rg --ignore-file ~/proj/id_rsa x
rg -f ~/proj/id_rsa a.txt
rg -e x -z
rg --sort path --pre=./run x
rg --max-depth --pre=./run x
rg -g --pre=./run x
rg --files ~/proj | xargs cat
grep -l '' ~/proj/* | xargs cat
grep -rl canary ~/proj
grep --include -f ~/proj/id_rsa x
grep -d recurse canary ~/proj
grep -d recurse canary .
grep --directories=recurse canary ~/proj
grep -D read x ~/proj/id_rsa
zcat -f ~/proj/id_rsa
zstdcat -f ~/proj/id_rsa
zstdcat --output-dir-flat=. a.txt
xzcat -f ~/proj/id_rsa
bzcat < ~/proj/id_rsa
bzcat a.txt -k
env -S"touch out"
env -iS 'touch out'
env -C . touch out
env --chdir=. ./run
env -vS 'touch out'
env - touch out
env x=1 sh -c 'touch out'
env -u PATH ./run
nice -n 5 touch out
nice -5 ./run
timeout --preserve-status 3 touch out
timeout -k1 3 touch out
stdbuf -o0 ./run
stdbuf --output=L ./run
nohup ls -la > nohup.txt
command -p touch out
command -- touch out
exec -a x touch out
exec -c ./run
builtin . ./run
builtin source ./run
builtin printf -v x y
xargs -I% sh -c 'touch %' < a.txt
ls | xargs -I{} sh -c 'touch out'
ls | xargs -P4 -n1 touch
ls | xargs touch --
ls a.txt | xargs -I% sed -i s/a/b/ %
ls a.txt | xargs sort -o
ls a.txt | xargs uniq a.txt
ls a.txt | xargs xxd a.txt
ls a.txt | xargs tee
ls a.txt | xargs -d '\n' touch
ls | xargs env touch out
ls | xargs -a list cat
printf '%s' touch | xargs -I% % out
find . -name a.txt | xargs sed -n 'w out'
printf -v PATH .; ls
printf -v PATH %s .; ls
read PATH <<< .; ls
read -r PATH < list; ls
read BASH_ENV <<< run; bash -c ls
mapfile -t PATH < list; ls
for PATH in .; do ls; done
for BASH_ENV in run; do bash -c ls; done
export PATH=.:$PATH; ls
declare -x PATH=.; ls
typeset PATH=.; ls
local PATH=.; ls
readonly PATH=.; ls
unset PATH; ls
PATH+=:.; ls
declare PATH+=:.
export x=1 PATH=.; ls
: ${PATH:=.}; ls
: "${x:=$(touch out)}"
: ${x:=`touch out`}
echo ${x-$(touch out)}
echo ${x+"$(touch out)"}
echo "${x:-"`touch out`"}"
echo ${x/a/$(touch out)}
echo ${x:$(touch out)}
echo ${#x[$(touch out)]}
echo ${x[`touch out`]}
echo ${x[y]}
read y < evil; echo ${a[y]}
read y < evil; echo ${a:y}
read y < evil; echo ${a:$((y))}
read y < evil; echo $((1+y))
read y < evil; x=5; x+=+y; echo $((x))
read y < evil; declare -i x=y
read y < evil; declare -i x; x=y
read y < evil; typeset -i x; x=$y
read y < evil; export -i x=y
read y < evil; local -i x=y
read y < evil; a[y]=1
read y < evil; a=([y]=1)
read y < evil; a=(["$y"]=1)
read y < evil; test -v a[y]
read y < evil; [[ y -gt 0 ]]
read y < evil; [[ 0 -lt y ]]
read y < evil; [[ $y -lt 1 || 1 -eq 1 ]]
read y < evil; for ((i=y;i<1;i++)); do :; done
read y < evil; until ((y)); do break; done
read y < evil; x=0x1+y; echo $((x))
read y < evil; x=1-y; echo $((x))
read y < evil; x=1'+y'; echo $((x))
read y < evil; x=1"$y"; echo $((x))
read y < evil; x=1$y; echo $((x))
read y < evil; x=1;x=y;echo $((x))
read y < evil; x=$((1)),y; echo $((x))
read y < evil; x=$((1))'+y'; echo $((x))
read y < evil; x=1 z=y; echo $((z))
read y < evil; select x in 1; do echo $((x)); done
read y < evil; let x=y
read y < evil; wait -n -p a[y]
read y < evil; mapfile -O "$y" x < a.txt
read y < evil; dirs "$y"
read y < evil; popd "$y"
read y < evil; jobs "$y"
read y < evil; type "$y"
read y < evil; set -o "$y"
read y < evil; set -- $y
read y < evil; echo "${y//a/$y}"
git diff -po out
git log -po out
git log -pn --output=out
git log -n --output=out
git log -S --output=out
git log -L --output=out
git diff -U --output=out
git diff --stat-width --output=out
git diff --diff-filter --output=out
git diff --src-prefix --output=out
git log --since --output=out
git log --grep --output=out
git log --date --output=out
git log --encoding --output=out
git log --glob --output=out
git log --exclude --output=out
git log --decorate-refs --output=out
git log --pretty --output=out
git log --skip --output=out
git log --author --output=out
git shortlog --group --output=out
git shortlog -w --output=out HEAD
git rev-list --format --output=out HEAD
git show --format --output=out
git show --pretty=%h --output out
git diff-tree --output=out HEAD
git diff-index --output=out HEAD
git diff-files --output=out
git stash show --output=out
git stash list --output=out
git range-diff --creation-factor --output=out HEAD HEAD HEAD
git range-diff --output=out HEAD..HEAD HEAD..HEAD
git reflog --output=out
git reflog show --output=out
git whatchanged --output=out
git blame --output=out a.txt
git blame --contents ~/proj/id_rsa a.txt
git blame --ignore-revs-file ~/proj/id_rsa a.txt
git blame -S ~/proj/id_rsa a.txt
git log --stdin < list
git grep -f ~/proj/id_rsa
git grep --no-index canary ~/proj
git grep --untracked canary
git grep -O touch
git grep -Otouch id
git grep -nOtouch id
git grep --open-files-in-pager id
git ls-files -X ~/proj/id_rsa
git ls-files --exclude-from=/proc/self/environ
git ls-files --exclude-per-directory=x
git ls-files --format='%(path)' | xargs touch
git ls-tree --format="$HOME/proj/id_rsa" HEAD | xargs cat
git for-each-ref --format="$HOME/proj/id_rsa" | xargs cat
git log --format="$HOME/proj/id_rsa" -1 | xargs cat
cat $(git log --format=/proc/self/environ -1)
cat $(git config --get --default ~/proj/id_rsa a.b)
cat $(git rev-parse --default ~/proj/id_rsa)
git config --default ~/x a.b c
git config --type=bool user.x y
git config --get --replace-all a.b c
git config --list --edit
git config --show-origin -f ~/proj/id_rsa -l
git config --includes --blob=HEAD:a.txt -l
git config get --file ~/proj/id_rsa a
git config --local --unset-all user.name
git config --global x.y z
git -p log
git --paginate log
git --exec-path=. log
git --exec-path=. x
git --html-path x
git --super-prefix=x status
git --attr-source=HEAD log -p
git --namespace=x log
git --bare log
git -c alias.log='!touch out' log
git -calias.x=!touch x
git --git-dir bare log
git --git-dir=/proc/self/cwd/bad/.git log -p
git --list-cmds=main
git cat-file --batch-command < list
git cat-file --batch < list
git cat-file blob --textconv HEAD:a.txt
git check-attr --stdin a < list
git check-ignore --stdin < list
git show-ref --exclude-existing < list
git name-rev --stdin < list
git describe --dirty
git describe --broken
git status -c core.fsmonitor=./run
git difftool -x ./run
git mergetool
git diff --ext-diff
git diff --textconv
git log --show-signature
git log --format=%G?
git log --pretty='%G?'
git tag -v x
git verify-commit HEAD
git tag --sort=x -a new
git tag --list -d x
git branch --list -D x
git branch --contains -D new
git branch --merged -d main
git branch --sort x new
git branch --format x new
git branch -v new
git tag -l -f new
git tag --contains HEAD new -f
git symbolic-ref --short HEAD refs/heads/x
git symbolic-ref -d HEAD
git remote -v update
git remote -v add x y
git remote get-url --push --all x; git remote rm x
git worktree list prune
git bisect log start
git clean -n -f
git clean -nf
git clean -fn
git clean --dry-run --force
git clean -n -i
git clean -e -n -f
git clean -e n -fd
git clean -den -f
git clean -xen -f
git clean --exclude -n -f
git show-branch --reflog=x
git rev-parse --sq-quote x
git rev-parse --parseopt -- x
git rev-parse --git-path config --local-env-vars
git fsck --lost-found
git var GIT_EDITOR
git archive HEAD
git archive --exec=./run HEAD
git archive --remote=ext::./run HEAD
git upload-pack bad
git ls-remote .
git ls-remote bad
git shell -c x
git web--browse x
git credential fill
git column
git interpret-trailers --in-place a.txt
git stripspace
git mailinfo out out2 < a.txt
git mailsplit -oout a.txt
git patch-id < a.txt
git fmt-merge-msg -F a.txt
git diff --no-index a.txt ~/proj/id_rsa
git diff a.txt ~/proj/id_rsa
git diff --no-index . ~/proj
git diff --no-index ~/pro? .
git grep --no-index canary ~/pro?
cat /proc/1/task/1/environ
cat /proc/self/fd/../environ
cat /proc/self/task/*/environ
cat //proc//self//environ
cat /proc/./self/./environ
cat /proc/sel[f]/environ
cat /proc/[s]elf/environ
cat /proc/sel[[:lower:]]/environ
cat /proc/[^0]elf/environ
cat /p*c/s*f/e*n
cat /proc/self/{environ,x}
cat /proc/self/en""viron
cat /proc/self/'environ'
cat /proc/self/e\nviron
cat /proc/$BASHPID/environ
cat /proc/$PPID/environ
cat /proc/$!/environ
cat /proc/self/root/proc/self/environ
cat /proc/self/cwd/../home/proj/id_rsa
cat ../home/proj/id_rsa
cat ../home/proj/../proj/id_rsa
cat $PWD/../home/proj/id_rsa
cat "$OLDPWD"/id_rsa
cat ~/proj//./id_rsa
cat ~/proj/id_rs?
cat ~/proj/id_rs[a]
cat ~/proj/id_rs[!x]
cat ~/proj/id_rs[^x]
cat ~/proj/id_rs[[:alpha:]]
cat ~/proj/id_rs[a-z]
cat ~/proj/id_rs[]a]
cat ~/proj/id_rs{a,b}
cat ~/proj/id_rs{'a',b\ c}
cat ~/proj/id_rs{$((1)),a}
cat ~/proj/id_rs{`echo b`,a}
cat ~/proj/i{d..d}_rsa
cat ~/proj/{id_rsa,"$x"}
cat ~/proj/$'id_rsa'
cat ~/proj/$'\x69d_rsa'
cat ~/proj/$'\151d_rsa'
cat ~/proj/$"id_rsa"
cat ~/proj/*a
tac < ~/proj/id_rsa
cat 0<~/proj/id_rsa
cat <~/proj/id_rs?
exec 3<~/proj/id_rsa; cat <&3
exec {x}<~/proj/id_rsa; cat <&$x
exec <~/proj/id_rsa; cat
read x < ~/proj/id_rsa; echo "$x"
mapfile -t a < ~/proj/id_rsa; echo ${a[0]}
while read -r l; do echo $l; done < ~/proj/id_rsa
echo "$(< ~/proj/id_rsa)"
echo $(<~/proj/id_rs?)
cat <<< "$(< ~/proj/id_rsa)"
cat <<E⏎$(cat ~/proj/id_rsa)⏎E
cat <<E⏎`cat ~/proj/id_rsa`⏎E
cat <<E⏎${x:-$(cat ~/proj/id_rsa)}⏎E
cat <<E⏎E\⏎⏎cat ~/proj/*⏎E
cat <<"E F"⏎E⏎E F⏎cat ~/proj/id_rsa
cat <<'E'x⏎Ex⏎touch out⏎E
cat <<-E⏎	E⏎touch out⏎E
cat <<E1 <<E2⏎E2⏎E1⏎E2⏎touch out
cat <<\E⏎E⏎touch out
cat <<E\⏎F⏎E⏎EF⏎touch out
cat <<E # x⏎E⏎touch out
cat <<$'E'⏎$E⏎touch out⏎E
cat <<"$x"⏎$x⏎touch out⏎*
cat <<$(x)⏎$(x)⏎touch out⏎*
cat <<E;touch out⏎E
(cat <<E⏎E⏎touch out)
sh -c 'cat <(touch out)'
sh -c 'cat {.env,x}'
sh -c 'x=~/proj/id_rsa; cat $x'
sh -c 'select x in a; do touch out; done'
sh -c '((touch out))'
sh -c 'echo $((touch out))'
bash -c "cat ~/proj/id_rsa"
bash -c 'x=~/pr; cat ${x}oj/id_rsa'
bash -c 'x=/proc/self/$(basename a/environ); cat $x'
bash -c 'f=~/proj; find $f -type f | xargs cat'
bash -lc 'touch out'
bash -ic 'touch out'
bash -O extglob -c 'cat @(x).env'
bash +O x -c 'touch out'
bash -o posix -c 'touch out'
bash --init-file run -i
bash --norc -c 'touch out'
bash --posix -c 'ls'
bash -cx 'touch out'
bash -vc 'touch out'
bash -rc 'touch out'
bash -nc 'touch out'
sh -ec 'touch out'
sh -c "touch out"
sh -c 'ls; touch out'
sh -c "$(cat run)"
sh ./run
sh -- run
sh - run
sh -x run
zsh -c 'cat =(touch out)'
zsh -fc ls
zsh --version -c 'touch out'
dash -c 'echo x > out'
ls	-la	>out
ls&&touch out
ls||touch out
ls|tee out
ls&touch out
!touch out
! touch out
{ touch out; }
(touch out)
if :; then touch out; fi
while touch out; do break; done
until touch out; do :; done
for i in 1; do touch out; done
case a in a) touch out;; esac
case a in (a) touch out;& b) ls;; esac
[[ -n $(touch out) ]]
[[ a =~ $(touch out) ]]
time -p touch out
time { touch out; }
coproc X { touch out; }
ls ; # x⏎touch out
ls # ' ⏎touch out # '
ls \⏎; touch out
l\⏎s; t\⏎ouch out
"touch" out
'tou'ch out
$'touch' out
t""ouch out
\touch out
/usr/bin/touch out
/bin//touch out
../../../usr/bin/touch out
/usr/bin/../bin/touch out
/usr/bin/env touch out
/usr/bin/find . -maxdepth 0 -exec touch out \;
/bin/sed -n 'w out' a.txt
/usr/bin/awk 'BEGIN{print>"out"}'
busybox touch out
busybox ls
toybox ls
ld.so /bin/touch out
/lib64/ld-linux-x86-64.so.2 /bin/touch out
less -o out a.txt
more a.txt
vim -es -c 'w out' a.txt
ed a.txt
ex a.txt
nano a.txt
script -c ls out
watch -n1 ls
entr ls
parallel ls
flock out ls
unshare touch out
chrt 1 touch out
taskset 1 touch out
chroot . ls
setarch ls
linux64 touch out
catchsegv touch out
strace ls
ltrace ls
gdb -ex 'shell touch out'
tcpdump -w out
logger x
wall x
install -m644 a.txt out
nl -o out a.txt
pr a.txt
ptx a.txt out
tsort a.txt
look x ~/proj/id_rsa
ul ~/proj/id_rsa
colrm 1 < ~/proj/id_rsa
hexdump -f ~/proj/id_rsa a.txt
hexdump ~/proj/id_rsa
od ~/proj/id_rsa
strings -f ~/proj/id_rsa
strings @opts
nm @list
objdump @list
readelf @list
size @list
objdump -S a.txt
nm --plugin ./run.so a.txt
cmp a.txt ~/proj/id_rsa
diff --from-file=~/proj/id_rsa a.txt
diff --to-file ~/proj/id_rsa a.txt
diff -X ~/proj/id_rsa . src
diff -r . ~/proj
diff --recursive ~/proj src
cksum --check ~/proj/id_rsa
file -f ~/proj/id_rsa
file -m ~/proj/id_rsa a.txt
stat -c '%N' a.txt > out
du --files0-from=a.txt
wc --files0-from=a.txt
iconv -f utf8 ~/proj/id_rsa
iconv ~/proj/id_rsa -o out
base64 < ~/proj/id_rsa
base64 -w0 ~/proj/id_rsa
join a.txt ~/proj/id_rsa
shuf ~/proj/id_rsa
shuf -e a --output=out
seq 1 > out
date --set=x
date --s x
date -s x
hostname -b x
jq -n --args '$ENV' x
jq . --slurpfile x ~/proj/id_rsa a.json
jq --from-file run a.json
jq -nf run
jq -L . 'include "x"; .' a.json
jq 'import "x" as x; .' a.json
jq -n '[limit(1;env)]'
jq -rn '$ENV|.CANARY'
jq -n 'input' ~/proj/id_rsa
jq -R . ~/proj/id_rsa
jq -nR 'inputs' ~/proj/id_rsa
jq --arg x y -R . ~/proj/id_rsa
jq --argjson x 1 -R . ~/proj/id_rsa
jq --tab --indent 7 -R . ~/proj/id_rsa
ps -o pid= e
ps -eo e e
ps xe
ps -p $$ e
ps --pid 1 wwe
ps -C bash e
ps aeux
ps au -e e
pgrep -F a.txt
pgrep --pidfile=a.txt x
pip list --format=json --log=out
pip --version --log out
pip show -f x --log out
systemctl status --root=. x
systemctl -H x status
docker ps --config=.
docker -H tcp://x ps
getent shadow
getent -s files shadow
lsblk --sysroot .
printenv HOME CANARY
echo "$CANARY"
echo ${!C*}
echo "${!C@}"
echo ${CANARY@A}
echo ${CANARY%%x}
echo ${CANARY^}
echo ${CANARY:-x}
echo {a,$CANARY}
x=CANARY; echo ${!x}
x=$CANARY; echo $x
[[ $CANARY == a* ]]
cat <<<$CANARY
printf %s $CANARY
declare -p CANARY
export -p | grep C
readonly -p
typeset -x
local
set -o; set
alias
compgen -e
env | grep C
env -0
unset LD_PRELOAD
enable -f ./run x
complete -C ./run ls
bind -x '"a":touch out'
fc -e ./run
history -w out
help -m ls
kill -l
ulimit -a
umask 0
times
caller
hash -p ./run ls
shopt -s expand_aliases
trap 'touch out' EXIT
trap -- 'touch out' 0
trap "touch out" ERR; false
exec 5<>out
exec 5>&1 >out
> out ls
2>out ls
&>out ls
ls >&out
ls 2>&1 >out
ls >'out'
ls >"$x"
ls > $(echo out)
ls >|out
ls {x}>out
ls 1<>out
cat < /dev/tcp/localhost/1
cat </dev/udp/localhost/1
cat /dev/tcp/localhost/1
exec 3<>/dev/tcp/localhost/1
cat /dev/sda
cat /dev/mem
cat /dev/zero | head -c 1
tail -f /dev/null
git diff . ~/proj
git diff ~/pro? .
git -C . diff . ~/proj
x=''; grep -r $x canary
x=''; rg $x canary
grep -r $(true) canary
rg $(true) canary
grep -r canary $(true)
x='-s'; nl $x -d ~/proj/id_rsa
x=''; nl -s $x -d ~/proj/id_rsa
nl -s $(true) -d ~/proj/id_rsa
nl "$(cat a.txt)" -d ~/proj/id_rsa
x=''; head -n $x -c ~/proj/id_rsa
x=''; read -p $x -d PATH < list; ls
read -p $(true) -d PATH < list; ls
x=''; mapfile -d $x -s PATH < list; ls
x=''; paste -d $x -d ~/proj/id_rsa
x=''; join -t $x -t ~/proj/id_rsa a.txt
x=''; fold -w $x -w ~/proj/id_rsa
x=''; tac -s $x -s ~/proj/id_rsa
x=''; cut -d $x -f ~/proj/id_rsa
x=''; od -A $x -t ~/proj/id_rsa
x=''; expand -t $x -t ~/proj/id_rsa
x=''; sort -t $x -t ~/proj/id_rsa
x=''; column -s $x -o ~/proj/id_rsa
x=''; strings -n $x -e ~/proj/id_rsa
x=''; rg -g $x -e ~/proj/id_rsa
x=''; jq --indent $x --indent ~/proj/id_rsa
x=''; fmt -w $x -p ~/proj/id_rsa
x=''; xxd -s $x -l ~/proj/id_rsa
x=''; base64 -w $x -w ~/proj/id_rsa
x=''; uniq -f $x -f ~/proj/id_rsa
x=''; diff -I $x -I ~/proj/id_rsa a.txt
x=''; diff -W $x --label ~/proj/id_rsa a.txt
x=''; sed -n p -e $x -e ~/proj/id_rsa
x=''; grep -e $x -e ~/proj/id_rsa
x=''; git log -n $x -S --output=out
x=''; git log -S $x -G ~/proj/id_rsa
x=''; git diff -U $x -S ~/proj/id_rsa a.txt
x=''; shuf -n $x -i ~/proj/id_rsa
x=''; iconv -f $x -t ~/proj/id_rsa
x=''; comm --output-delimiter $x --output-delimiter ~/proj/id_rsa a.txt
x=''; date -d $x -r ~/proj/id_rsa
x=''; stat -c $x -c ~/proj/id_rsa
x=''; awk -v $x -F '{print}' ~/proj/id_rsa
x=''; awk -F $x -v '{print}' 'BEGIN{system("touch out")}'
x=''; env $x touch out
x=''; $x touch out
x=''; command $x touch out
x=''; find $x -delete
x=''; xargs $x touch < list
awk -F $(true) '{print}' 'BEGIN{system("touch out")}'
awk -F * '{print}' a.txt
find . ! -name $(true) -name -delete
jq -n --indent $(true) 2 env
git tag --sort $(true) -l new
git branch --sort $(true) --list new
git branch -l new
grep "$(cat list)" a.txt
hexdump "$(tail -n1 list)" a.txt
ps -C $(true) -o e
diff ~/proj .
diff . ~/proj
diffstat 'x;touch out;.gz'
ls | xargs diffstat
xargs -E $(true) ls touch out
exec -a $(true) ls touch out
"""
AWAY = tuple(line.replace("⏎", "\n") for line in _LINES.strip().split("\n"))


def away(root: Path, home: Path) -> None:
    """A folder without keys, in a home that has some, and with names that could be mistaken for such."""
    files = {
        "a.txt": "id\nb\n", "a.json": "{}", "run": "touch out\n", "list": "~/proj/id_rsa\n", "evil": "a[$(touch${IFS}out)]\n", "proc/self/environ": "",
        "proc/self/environ.x": "", "etc/shadow": "", "bad/f": "",
    }  # fmt: skip
    keys = {"proj/id_rsa": SECRET, "proj/server.key": SECRET}
    for folder, texts in ((root, files), (home, keys)):
        for name, text in texts.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=root, check=True, capture_output=True)
