"""What a model writes without having read it: well-known names of languages and libraries, lines that any file of a kind has."""

import builtins
import re
from functools import cache
from importlib import import_module
from typing import Final

# Names of widely used libraries that are written like a project's own. What Python's standard library exports is asked of it below.
_APIS: Final = """
GitHub GitLab BitBucket JavaScript TypeScript CoffeeScript NodeJS NestJS NextJS ReactJS GraphQL OpenAI ChatGPT DeepSeek LangChain PostgreSQL MySQL
MongoDB DynamoDB SQLite CloudFlare CloudFront FastAPI PyTorch TensorFlow NumPy SciPy PowerShell MacOS macOS LinkedIn YouTube DevTools VSCode IntelliJ
WebSocket WebSockets README OAuth OAuth2 node_modules console_log iPhone iPad iPod iCloud eBay AirBnB WordPress JetBrains PayPal WhatsApp TikTok
useState useEffect useMemo useCallback useRef useContext useReducer useLayoutEffect useNavigate useParams useRouter useQuery useMutation createContext
createElement className onClick onChange onSubmit onClose forwardRef setState setTimeout clearTimeout setInterval clearInterval requestAnimationFrame
addEventListener removeEventListener preventDefault stopPropagation querySelector querySelectorAll getElementById getByText getByRole getByTestId
localStorage sessionStorage innerHTML textContent appendChild removeChild toString toLowerCase toUpperCase indexOf lastIndexOf startsWith endsWith
forEach findIndex flatMap splice charAt charCodeAt parseInt parseFloat isNaN isArray hasOwnProperty stringify toFixed toISOString toLocaleString
getTime encodeURIComponent decodeURIComponent instanceof readFile readFileSync writeFile writeFileSync existsSync mkdirSync readdirSync unlinkSync
execSync spawnSync createReadStream fileURLToPath beforeEach afterEach beforeAll afterAll toBe toEqual toContain toThrow toHaveBeenCalled
toHaveBeenCalledWith toMatchObject toBeDefined toBeNull toBeTruthy mockReturnValue mockResolvedValue mockImplementation vi_fn waitFor
ErrorBoundary ReactNode HTMLElement HTMLDivElement HTMLInputElement PromiseLike ReadonlyArray TypeError RangeError SyntaxError AbortController
AbortSignal FormData URLSearchParams TextEncoder TextDecoder ArrayBuffer Uint8Array WeakMap FileReader IntersectionObserver MutationObserver
fmt_Errorf Errorf Sprintf Printf Println Fprintf Fprintln WriteString ReadFile WriteFile ReadAll MkdirAll RemoveAll TempDir MkdirTemp UserHomeDir
Getenv LookupEnv HasPrefix HasSuffix TrimSpace TrimPrefix TrimSuffix TrimRight ReplaceAll ToLower ToUpper SplitN EqualFold NewReader NewWriter
NewScanner NewBuffer NewDecoder NewEncoder MarshalIndent Unmarshal RawMessage ParseInt ParseBool ParseFloat FormatInt Itoa WithCancel WithTimeout
WithValue CommandContext CombinedOutput StdoutPipe WaitGroup RWMutex RLock RUnlock DeepEqual NoError ErrorContains ErrorIs ErrorAs NotNil
ElementsMatch HandleFunc ListenAndServe ResponseWriter StatusOK StatusNotFound StatusBadRequest StatusInternalServerError RoundTripper
io_util context_Context staticcheck golangci nolint gofmt goimports omitempty
unwrap_or unwrap_or_else unwrap_or_default map_err ok_or and_then to_string into_iter as_ref as_str from_str HashMap HashSet BTreeMap PathBuf
DataFrame ndarray read_csv to_csv groupby value_counts reset_index set_index iterrows fillna dropna astype get_dummies train_test_split
fit_transform random_state n_estimators max_depth learning_rate batch_size hidden_size num_layers
models_Model CharField IntegerField TextField BooleanField DateTimeField DateField FloatField DecimalField AutoField ForeignKey OneToOneField
ManyToManyField EmailField SlugField JSONField max_length related_name on_delete null_true default_auto_field INSTALLED_APPS SECRET_KEY DATABASES
ALLOWED_HOSTS MIDDLEWARE ROOT_URLCONF AppConfig app_label makemigrations migrate_schema create_model schema_editor select_related prefetch_related
order_by group_by get_object_or_404 get_queryset get_or_create bulk_create add_argument parse_args ArgumentParser pytest_fixture monkeypatch tmp_path
parametrize setUp tearDown assertEqual assertTrue assertFalse assertRaises assertIn assertIsNone assertIsInstance mock_open MagicMock side_effect
return_value sys_path site_packages virtualenv set_title set_xlabel set_ylabel set_xlim set_ylim tight_layout
created_at updated_at deleted_at user_id api_key access_token refresh_token client_id client_secret content_type user_agent status_code
error_message file_path file_name snake_case camelCase PascalCase kebab_case timestamp_ms is_valid is_active has_more page_size next_page
input_tokens output_tokens max_tokens tool_use tool_result tool_call system_prompt
DOCKER_BUILDKIT GITHUB_TOKEN GITHUB_OUTPUT GITHUB_ENV GITHUB_SHA OPENAI_API_KEY ANTHROPIC_API_KEY NODE_ENV LD_LIBRARY_PATH PYTHONPATH
INTERNAL_ERROR NOT_FOUND UNAUTHORIZED BAD_REQUEST devDependencies peerDependencies tsconfig eslintrc tailwindcss postcss webpack
""".split()
_MODULES: Final = (
    "os os.path sys re json subprocess typing collections pathlib unittest datetime logging asyncio functools itertools io tempfile shutil time"
    " dataclasses contextlib inspect argparse sqlite3 hashlib random threading urllib.parse http.client traceback types enum string math"
).split()


@cache
def known_names() -> frozenset[str]:
    """Names that say nothing of a session."""
    exported = (name for module in _MODULES for name in dir(import_module(module)))
    return frozenset((*_APIS, *dir(builtins), *exported, *(name for kind in (str, dict, list, set) for name in dir(kind))))


_IMPORT = re.compile(
    r"(?:import|from|use|using|require|package|#include|export \* from|const \w+ = require|@import)\b|\"[\w.@/-]+\",?$"
)
_HEADING = re.compile(r"(?:#{1,6}|//+|--|\{?/\*+|<!--) ?(?:[\w'-]+\W+){0,3}[\w'-]+\W*$")  # or a comment of few words
_ANY = re.compile(
    r"if err(?: :?=.*)? ?!= nil|return (?:err|nil|None|null|true|false|True|False)\b|if __name__ ==|console\.log\(|print\(f?[\"']?=+"
    r"|def (?:setUp|tearDown|__init__|__str__|__repr__)\(self\)|<\/?\w+(?: className=\"[\w -]*\")?>$|\}? ?catch \(\w+\) \{|name: [\w ]+$"
    r"|set -(?:e|eu|euo pipefail)|#!/|echo [\"']=*|class Meta:|[\w.]+ = models\.\w+Field\((?:max_length=\d+)?\)$|\w+ := &?\w+\.\w+\{$"
    r"|import\w* \(|func Test\w+\(t \*testing\.T\) \{$|t\.(?:Parallel|Helper|Run|Fatal|Error)f?\(|runs-on: |uses: actions/"
)


def is_idiom(line: str) -> bool:
    """Whether a line is one that any file of its kind may have: an import, a heading of few words, a check that everyone writes."""
    return _IMPORT.match(line) is not None or _HEADING.match(line) is not None or _ANY.match(line) is not None
