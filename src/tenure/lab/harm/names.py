"""What a text names: places, ids, numbers, symbols, facts, each with its form.

Conservative on purpose: a string is taken for a name only when its form says so. One pass per pattern, each of them linear on any text.
"""

import builtins
import re
from collections.abc import Iterator
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import Final

from msgspec import Struct

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


# Arguments that hold what an edit must find, as the tools of known agents name them.
TARGETS: Final = frozenset("old_string old_str oldText oldString old_text search find original target_text old_content".split())
PATCHES: Final = frozenset("patchText patch diff input".split())
PLACES: Final = frozenset(
    "file_path filePath path absolute_path notebook_path dir_path directory workdir cwd file filename".split()
)
PATTERNS: Final = frozenset("pattern query regex words".split())
BODIES: Final = frozenset(
    "content new_string new_str newText newString new_text replace replacement file_text patchText patch diff".split()
)
# What an agent says of a call, or chooses from a list that its tools give it.
REMARKS: Final = frozenset(
    "description activeForm status priority output_mode format type subagent_type model timeout run_in_background include glob multiline"
    " head_limit offset limit justification explanation".split()
)
COMMANDS: Final = frozenset("command cmd script code keystrokes".split())


class Kind(StrEnum):
    """What a need is."""

    LOCATOR = "locator"
    VERBATIM = "verbatim"
    SYMBOL = "symbol"
    FACT = "fact"


class AnchorForm(StrEnum):
    """What a need looks like."""

    PATH = "path"
    FILE = "file"  # a name without its folder
    URL = "url"
    ID = "id"
    HASH = "hash"
    NUMBER = "number"
    TARGET = "target"  # text that an edit is to find
    LINES = "lines"  # lines of a body or of a command
    QUOTE = "quote"
    NAME = "name"
    WORD = "word"  # a name in plain letters, set off as one
    FIGURE = "figure"  # an amount, a share, a date
    PROPER = "proper"  # a name of several words


# What each form is, and how many objects may hold a string of it that still counts. A name or a file's bare name in more of them is the session's
# common talk, and the model has it in mind; a whole path, an id or the text of an edit cannot be put down without having it, however often it stood.
_FORMS: Final = {
    AnchorForm.PATH: (Kind.LOCATOR, 24),
    AnchorForm.FILE: (Kind.LOCATOR, 6),
    AnchorForm.URL: (Kind.LOCATOR, 24),
    AnchorForm.ID: (Kind.LOCATOR, 24),
    AnchorForm.HASH: (Kind.LOCATOR, 24),
    AnchorForm.NUMBER: (Kind.LOCATOR, 6),
    AnchorForm.TARGET: (Kind.VERBATIM, 24),
    AnchorForm.LINES: (Kind.VERBATIM, 6),
    AnchorForm.QUOTE: (Kind.VERBATIM, 6),
    AnchorForm.NAME: (Kind.SYMBOL, 6),
    AnchorForm.WORD: (Kind.SYMBOL, 3),
    AnchorForm.FIGURE: (Kind.FACT, 3),
    AnchorForm.PROPER: (Kind.FACT, 3),
}
KIND_OF: Final = {form: kind for form, (kind, _) in _FORMS.items()}
RARE: Final = {form: objects for form, (_, objects) in _FORMS.items()}


class Anchor(Struct, frozen=True, gc=False):
    """One exact string that a step uses."""

    form: AnchorForm
    text: str


# Endings of file names that agents work on.
_EXTENSIONS: Final = frozenset(
    "py pyi js jsx ts tsx mjs cjs go rs java kt swift c h cc cpp hpp cs rb php sh bash zsh fish ps1 sql html css scss less vue svelte md mdx rst"
    " txt json jsonl yaml yml toml ini cfg conf lock xml csv tsv log env ipynb proto graphql tf dockerfile makefile mod sum db sqlite png jpg"
    " jpeg svg gif pdf zip gz tar xz diff patch tmpl tpl ex exs erl hs ml scala clj lua pl r jl dart zig nim pony pen omp plist".split()
)
_RUN = re.compile(r"[\w./@+~-]{4,400}")
_URL = re.compile(r"https?://[^\s\"'<>()\[\]{}|\\^`]{4,300}")
_HEX = re.compile(r"[0-9a-f]{7,64}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBER = re.compile(r"\d{4,19}")
_COLOUR = re.compile(r"#[0-9A-Fa-f]{6}(?![0-9A-Za-z])")
_NAME = re.compile(r"[A-Za-z_]\w{5,63}")
_INNER_UNDERSCORE = re.compile(r"[a-zA-Z0-9]_[a-zA-Z0-9]")
_CAMEL = re.compile(r"[a-z0-9][A-Z]")
_DIGITS = re.compile(r"\d{3}")
_SCALE = re.compile(r"[a-z]+(?:-[a-z]+)*-\d{1,2}00?")  # a step of a scale, as in text-slate-400
_FEW_DIGITS: Final = 3  # that do not make an id unless they stand together, as in WP1-WP10
_BETWEEN = re.compile(r"[.@+~]")
_UPWARDS = re.compile(r"(?:\.{1,2}/)+")
_EXTENSION = re.compile(r"[\w-]\.[A-Za-z][A-Za-z0-9]{0,6}$")
_TRAILING: Final = ".,;:!?-+~"
_LONGEST_PLACE: Final = 400
_TOPS: Final = frozenset(
    "src lib libs pkg packages test tests docs doc cmd app apps internal include scripts examples crates tools modules components api server"
    " client web public assets config core".split()
)
_PLAIN_COLOUR: Final = 3  # different characters of a colour such as #FF0000, the sign included
_NO_FILES: Final = frozenset(
    "console.log console.table process.env import.meta.env math.log Node.js node.js Next.js next.js Vue.js D3.js".split()
)

_TITLE = re.compile(r"\s*(?:#{1,6} |\*\*[^*]*\*\*:?\s*$|[|+-]{3})")
_SHORTEST_FACT: Final = 4
_MONTH: Final = "(?:January|February|March|April|May|June|July|August|September|October|November|December|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
_FACTS: Final = (
    (
        AnchorForm.FIGURE,
        re.compile(
            r"(?<![\w.,/-])(?:[$€£]\s?\d[\d,]*(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.\d{1,4}\s?(?:%|s|ms|GB|MB|KB|kB|km|kg|million|billion)"
            rf"|\d+\.\d{{2,6}}|\d{{4}}-\d{{2}}-\d{{2}}|{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:, \d{{4}})?|\d{{1,2}} {_MONTH} \d{{4}})(?![\w]|[.,]\d)"
        ),
    ),
    (
        AnchorForm.PROPER,
        re.compile(
            r"(?<![.!?:] )(?<=[\w,;(\"'*] )[\"'(*]*((?:[A-Z][\w'-]{2,})(?: (?:(?:of|de|van|von|da|del) )?[A-Z][\w'-]{2,}){1,4})"
        ),
    ),
    (AnchorForm.WORD, re.compile(r"`([A-Za-z][a-z]{3,}(?:-[a-z]{2,}){0,4})`")),
)

# Files that are looked for without having been seen.
USUAL_FILES: Final = frozenset(
    "README.md LICENSE CHANGELOG.md CLAUDE.md AGENTS.md CONTRIBUTING.md package.json package-lock.json tsconfig.json go.mod go.sum main.go main.py"
    " index.ts index.js index.html pyproject.toml setup.py setup.cfg requirements.txt Cargo.toml Makefile Dockerfile .gitignore __init__.py".split()
)
_EVERYWHERE = re.compile(
    r"/(?:dev|bin|sbin|proc|tmp|usr/(?:local/)?s?bin)(?:/\w+)?/?$|.*/usr/bin/env$"
)  # folders and devices of any machine
_COMMON_NUMBERS: Final = frozenset(str(2**power) for power in range(10, 33)) | {"8080", "8888", "1234", "12345", "9999"}


def names_of(field: str, text: str) -> Iterator[Anchor]:
    """Locators and symbols of a text, each once; of an argument that is a place, the place."""
    seen: set[Anchor] = set()
    found = _place(text.strip()) if field in PLACES and len(text) <= _LONGEST_PLACE and "\n" not in text else _named(text)
    for anchor in found:
        if anchor not in seen:
            seen.add(anchor)
            yield anchor


def _place(text: str) -> Iterator[Anchor]:
    text = text.removeprefix("./")
    if text and text not in USUAL_FILES:
        yield Anchor(AnchorForm.PATH if "/" in text or "\\" in text else AnchorForm.FILE, text)


def _named(text: str) -> Iterator[Anchor]:
    without = text
    if "://" in text:
        for found in _URL.finditer(text):
            yield Anchor(AnchorForm.URL, found[0].rstrip(_TRAILING))
        without = _URL.sub(" ", text)
    if "#" in text:
        for found in _COLOUR.finditer(without):
            if len(set(found[0].lower())) > _PLAIN_COLOUR:
                yield Anchor(AnchorForm.ID, found[0])
        without = _COLOUR.sub(" ", without)
    for found in _RUN.finditer(without):
        yield from _of_run(found[0], is_called=without[found.end() : found.end() + 1] == "(")


def _of_run(run: str, *, is_called: bool = False) -> Iterator[Anchor]:
    """What one run of characters without spaces names."""
    run = run.rstrip(_TRAILING)
    if "/" in run:
        if is_path(run):
            upwards = _UPWARDS.match(run)
            named = run[upwards.end() :] if upwards else run  # how one gets there from a file is worked out, not remembered
            if "/" in named:
                yield Anchor(AnchorForm.PATH, named)
            else:
                yield from _of_run(named)
            return
        for part in run.split("/"):
            yield from _of_run(part)
        return
    if _UUID.fullmatch(run):
        yield Anchor(AnchorForm.HASH, run)
    elif (
        _EXTENSION.search(run)
        and run.rpartition(".")[2].lower() in _EXTENSIONS
        and not (is_called or run in _NO_FILES or run in USUAL_FILES or run.partition(".")[0] in _EXTENSIONS)
    ):
        yield Anchor(AnchorForm.FILE, run)
    else:
        for piece in _BETWEEN.split(run):
            yield from _of_piece(piece.strip("-"))


def _of_piece(piece: str) -> Iterator[Anchor]:
    if _NUMBER.fullmatch(piece):
        if is_telling(piece):
            yield Anchor(AnchorForm.NUMBER, piece)
    elif _HEX.fullmatch(piece) and not piece.isalpha():
        yield Anchor(AnchorForm.HASH, piece)
    elif _is_id(piece):
        yield Anchor(AnchorForm.ID, piece)
    elif _is_name(piece):
        yield Anchor(AnchorForm.NAME, piece)
    elif "-" in piece:
        for part in piece.split("-"):
            yield from _of_piece(part)


def is_path(run: str) -> bool:
    """Whether a run with slashes names a file or folder, and is not "and/or", a date or a fraction."""
    parts = [part for part in run.split("/") if part not in ("", ".", "..", "~")]
    if not parts or not any(len(part) > 1 and any(map(str.isalpha, part)) for part in parts):
        return False
    if _EVERYWHERE.fullmatch(run):
        return False
    rooted = run[0] in "/~" or run.startswith(("./", "../"))
    extended = parts[-1].rpartition(".")[2].lower() in _EXTENSIONS and "." in parts[-1]
    if len(parts) == 1:
        return rooted and extended
    if extended or (rooted and len(parts) >= 2):
        return True
    return len(parts) >= 3 and (parts[0] in _TOPS or any(not part.isalnum() for part in parts))


def is_telling(number: str) -> bool:
    """Whether a number is likely to have been read somewhere: no year, no round number, no power of two, no usual port."""
    is_year = len(number) == 4 and number[:2] in ("19", "20")
    return not (is_year or number.endswith("00") or number in _COMMON_NUMBERS)


def _is_id(piece: str) -> bool:
    if not 8 <= len(piece) <= 64 or "--" in piece or _SCALE.fullmatch(piece):
        return False
    digits = sum(map(str.isdigit, piece))
    letters = sum(map(str.isalpha, piece))
    return letters >= 2 and (digits > _FEW_DIGITS or _DIGITS.search(piece) is not None)


def _is_name(piece: str) -> bool:
    if not _NAME.fullmatch(piece) or piece in known_names():
        return False
    return _INNER_UNDERSCORE.search(piece) is not None or _CAMEL.search(piece) is not None


def facts_of(text: str) -> Iterator[Anchor]:
    """What words name without a form of code: figures, names of several words, plain words set off as names. Each once; headings name nothing."""
    seen: set[str] = set()
    for line in text.split("\n"):
        if _TITLE.match(line):
            continue
        for form, pattern in _FACTS:
            for found in pattern.finditer(line):
                fact = found[found.lastindex or 0].strip(_TRAILING + " ")
                if fact not in seen and len(fact) >= _SHORTEST_FACT:
                    seen.add(fact)
                    yield Anchor(form, fact)
