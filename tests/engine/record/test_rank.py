import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.record.search import CANDIDATES, Matcher, ranked, terms_of


def best(words: str, *texts: str, most: int = 9) -> list[int]:
    """The numbers of the texts, the oldest being 0, in their order."""
    matcher = Matcher(terms_of(words))
    newest_first = [((n, 0), text, len(text.split()) + 1) for n, text in reversed(list(enumerate(texts)))]
    return [at[0] for at in ranked(newest_first, matcher, most).best]


@pytest.mark.parametrize(
    "text", ["verify_token", "verifyToken", "VerifyToken", "auth.verify.token", "verify-token", "VERIFY_TOKEN"]
)
@pytest.mark.parametrize("words", ["verify_token", "verifyToken", "verify.token"])
def test_an_identifier_is_found_in_any_spelling_and_before_its_parts(text: str, words: str) -> None:
    assert best(words, f"def {text}(x)", "verify that the token is there") == [0, 1]


@pytest.mark.parametrize("word", ["http", "server", "error", "2"])
def test_the_parts_of_an_identifier_are_words(word: str) -> None:
    assert best(word, "class HTTPServerError2:", "nothing here") == [0]


@pytest.mark.parametrize("text", ["tokens", "betoken", "tok en", "retokenized"])
def test_a_part_of_a_word_is_no_word(text: str) -> None:
    assert best("token", text) == []


def test_a_path_is_found_with_any_separator() -> None:
    assert best("src/auth/login.py", r"D:\src\auth\login.py", r'{"path":"src\\auth\\login.py"}', "src auth") == [1, 0, 2]


def test_a_number_is_not_the_start_of_a_longer_one() -> None:
    assert best("needle_3", "needle_30", "needle_3", "needle_13")[0] == 1


def test_rare_words_tell_more_than_common_ones_and_of_equals_the_newer_comes_first() -> None:
    assert best("the flux", "the the the", "a flux", "the end") == [1, 0, 2]
    assert best("flux", "a flux", "a flux") == [1, 0]


def test_scripts_without_spaces_and_signs_are_found_where_they_stand() -> None:
    assert best("道", "大道至简", "nothing") == [0]
    assert best("=>", "x => y", "x = y") == [0]
    assert best("größe", "die Größe", "die Grösse") == [0]


def test_signs_that_are_longer_in_lower_case_do_no_harm() -> None:
    assert best("token", "İİİİ token") == [0]


def test_the_line_shown_is_the_one_with_most_of_the_words() -> None:
    text = "token\nverify\nverify the token\ntoken"
    assert text[Matcher(terms_of("verify token")).best_place(text, (1.0, 1.0)) :].startswith("verify the token")


def test_a_pass_over_very_many_texts_remembers_few_and_counts_all() -> None:
    texts = (((n, 0), "flux " * (1 + (n == 7)), 5) for n in reversed(range(3 * CANDIDATES)))
    found = ranked(texts, Matcher(terms_of("flux")), 2)
    assert (found.best, found.matched) == (((7, 0), (3 * CANDIDATES - 1, 0)), 3 * CANDIDATES)


@given(st.text(max_size=60), st.lists(st.text(max_size=60), max_size=5))
def test_no_words_and_no_texts_do_harm(words: str, texts: list[str]) -> None:
    assert len(best(words, *texts)) <= len(texts)
