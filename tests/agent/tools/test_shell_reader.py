import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.agent.tools.shell.reader import parse

KNOWN = {"HOME": "/home/ada", "TMPDIR": "/scratch"}


def commands(text: str) -> list[str]:
    """The commands of a script, each as its words; what is only known when it runs is a star."""
    return [" ".join(word.text for word in command.words) for command in parse(text, KNOWN).commands]


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("a && b || c; d & e | f |& g", ["a", "b", "c", "d", "e", "f", "g"]),
        ("a\nb\n\n# c\nd # e", ["a", "b", "d"]),
        ("echo $(rm -rf x) \"$(cat a)\" '$(no)'", ["rm -rf x", "cat a", "echo * * $(no)"]),
        ("ls `pwd` $(echo id)", ["pwd", "echo id", "ls * *"]),
        ("if [ -f x ]; then cat x; else ls; fi", ["[ -f x ]", "cat x", "ls"]),
        ("for f in *.py; do head $f; done", ["for f in *.py", "head *"]),
        ("while read l; do echo $l; done < f", ["read l", "echo *", ""]),
        ("( cd x; ls ) ; { pwd; }", ["cd x", "ls", "pwd"]),
        ("! time ls", ["time ls"]),
        ("r\\m 'r'm \"r\"m r''m rm\\\n -x", ["rm rm rm rm rm -x"]),
        ("cat <(sort a) > >(tee x)", ["sort a", "tee x", "cat /dev/fd/63"]),
        ("cat <<EOF | wc\n$(rm x)\nEOF\nls", ["rm x", "cat", "wc", "ls"]),
        ("cat <<'EOF' | wc\n$(rm x)\nEOF\nls", ["cat", "wc", "ls"]),
        ("cat <<-EOF\n\thi\n\tEOF\nls", ["cat", "ls"]),
        ("[[ -f x && a < b ]] && ls", ["[[ -f x & & a < b", "ls"]),
        ("~/x $HOME/y ${HOME}/z $TMPDIR ~bob/q", ["/home/ada/x /home/ada/y /home/ada/z /scratch *bob/q"]),
        ("HOME=/x; cat ~/a $HOME", ["", "cat */a *"]),
        ("x a#b 'x y' $'tab\\t' #c", ["x a#b x y tab\t"]),
        ("case $x in a|b) ls;; (c) cat y;; *) pwd; esac; id", ["ls", "cat y", "pwd", "id"]),
        ("case x in\n  a)\n    ls\n    ;;\nesac", ["ls"]),
        ("x=(a $(ls)\n b); wc", ["ls", "", "wc"]),
        ("coproc ls", ["ls"]),
        ("select x in a b; do ls; done", ["select x in a b", "ls"]),
        ("~/.{ssh,x}/id {a..c}", ["/home/ada/.* *"]),
    ],
)
def test_every_command_is_found_wherever_it_stands(script: str, found: list[str]) -> None:
    read = parse(script, KNOWN)
    assert [" ".join(word.text for word in command.words) for command in read.commands] == found
    assert read.odd == ()


@pytest.mark.parametrize(
    ("script", "said"),
    [
        *(
            (script, "something that cannot be read")
            for script in (
                "echo 'open",
                "echo $(ls",
                "echo `ls",
                "ls )",
                "ls a(b)",
                "case x ni a) ls;; esac",
                "case x in a",
                "x=(a b",
                "f${x}() { ls; }",
                "cat <<EOF\nno end",
                "cat <<A <<B\na\nA\nb\nB",
            )
        ),
        ("ls `pwd` `id`", "never closed"),
        ("cat <<EOF 'a\nb'\nx\nEOF", "a here-document"),
        ("ls\r", "control characters"),
        ("$(" * 50 + "ls" + ")" * 50, "too many expansions in each other"),
        ("ls " + "x" * 100_000, "too long"),
        ("x=(" * 30_000, "too long"),
        ("ls | " * 18_000, "too long"),
    ],
)
def test_what_is_not_understood_is_said(script: str, said: str) -> None:
    assert any(said in odd for odd in parse(script, KNOWN).odd)


@pytest.mark.parametrize(
    "script",
    [
        "wc -l2>/dev/null",  # `-l2` is one word to bash, a descriptor to the grammar
        "ls;; cat",
        "cat (ls)",
        "(ls) cat",
        "{ ls; } cat",
        "[[ -f a ]] cat",
        "if ls; then ls fi",
        "cat <<-\n\tE\ntouch x\nE",
        "cat <<'E'xE\ntouch x\nE\ncat\nExE",
        "cat <<E\nE\\\n\ntouch x\nE",
        "l\\\ns",
        "[ a > b ]",
        'x=env; y=$x\u00e9 cat "$y"',  # which letters a name has depends on the locale
        "case a in?b) ls;; esac",
        "echo a<(ls)",
        "\\\n#ls",
    ],
)
def test_what_the_grammar_reads_otherwise_than_bash_is_not_trusted(script: str) -> None:
    assert parse(script, KNOWN).odd


def test_a_wide_blank_is_part_of_a_word() -> None:
    assert commands("ls\u00a0a b\u2003c é;ü") == ["ls\u00a0a b\u2003c é", "ü"]


def test_blanks_before_an_expansion_in_quotes_are_kept() -> None:
    assert commands('echo "a  $x"  "  $(ls)"') == ["ls", "echo a  *   *"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("f() { ls; }; f a", "a function"),
        ("function f { ls; }; f", "a function"),
        ("(( x ))", "arithmetic"),
        ("echo $((a[$(ls)]))", "arithmetic"),
        ("x=$(cat f); echo $((x))", "a sum of what is not known"),
        ("echo ${!x}", "an expansion ${…}"),
        ("echo ${x@P}", "an expansion ${…}"),
        ("echo ${x:-$(ls)}", "an expansion ${…}"),
        ("IFS= read -r x", "a variable without a value"),
    ],
)
def test_what_can_only_be_told_when_it_runs_is_said(script: str, said: str) -> None:
    read = parse(script, KNOWN)
    assert said in read.unknown
    assert read.odd == ()


def test_redirections_and_assignments_belong_to_their_command() -> None:
    (command,) = parse("A=1 B=$(x) cmd 2>&1 >out 3<in &>all {fd}>>more", KNOWN).commands[1:]
    assert [(each.name, each.value.text) for each in command.assignments] == [("A", "1"), ("B", "*")]
    assert [(each.sign, each.target.text) for each in command.redirects] == [
        (">&", "1"),
        (">", "out"),
        ("<", "in"),
        ("&>", "all"),
        (">>", "more"),
    ]
    assert [
        (each.sign, each.target.text) for text in ("cat 0< a 2>&-", "cat <<< b") for each in parse(text).commands[0].redirects
    ] == [
        ("<", "a"),
        (">&", "-"),
        ("<<<", "b"),
    ]


def test_a_counter_is_no_unknown_sum() -> None:
    assert parse("i=0; while [ $i -lt 5 ]; do i=$((i+1)); echo $i; done").unknown == ()


@given(st.text(alphabet="ab \n'\"`$(){}[]<>|&;\\#=*?~!-", max_size=80))
def test_any_text_can_be_read(script: str) -> None:
    read = parse(script, KNOWN)
    assert all(command.words or command.assignments or command.redirects for command in read.commands)
