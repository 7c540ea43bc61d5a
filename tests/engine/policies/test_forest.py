from math import exp

from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.policies.graph.forest import VALUES, Forest
from tenure.engine.policies.graph.keeping import ModelWeights
from tenure.engine.policies.graph.learned import LEARNED
from tenure.engine.policies.graph.sight import ANCHOR_FEATURES, LINE_FEATURES, OF_NAME, OF_PIECE

SHARED, OTHERS = 2, 3
Node = (
    int | tuple[int, int, "Node", "Node"]
)  # a leaf's thousandths, or a feature, the greatest value that goes left, and both sides


def trees(*features: int) -> st.SearchStrategy[Node]:
    return st.recursive(
        st.integers(-2_000, 2_000),
        lambda inner: st.tuples(st.sampled_from(features), st.integers(0, VALUES), inner, inner),
        max_leaves=8,
    )


FORESTS = st.lists(st.integers(SHARED, SHARED + OTHERS - 1).flatmap(lambda other: trees(0, 1, other)), min_size=1, max_size=4)


def spelled(node: Node) -> str:
    return str(node) if isinstance(node, int) else f"{node[0]}<{node[1]} {spelled(node[2])} {spelled(node[3])}"


def score(node: Node, features: tuple[int, ...]) -> int:
    while not isinstance(node, int):
        node = node[2] if features[node[0]] <= node[1] else node[3]
    return node


@given(FORESTS, st.tuples(*[st.integers(0, VALUES - 1)] * SHARED), st.lists(st.tuples(*[st.integers(0, VALUES - 1)] * OTHERS)))
def test_tables_give_what_a_walk_through_all_trees_gives(
    forest: list[Node], shared: tuple[int, ...], things: list[tuple[int, ...]]
) -> None:
    tables = Forest(" ".join(map(spelled, forest))).tables(shared, OTHERS)
    columns = [[each[place] for each in things] for place in range(OTHERS)]
    assert tables.chances(columns) == [
        1 / (1 + exp(-sum(score(tree, (*shared, *each)) for tree in forest) / 1_000)) for each in things
    ]


def test_what_was_learned_asks_for_features_that_there_are() -> None:
    shares = {"anchor": (ANCHOR_FEATURES, OF_NAME), "line": (LINE_FEATURES, OF_PIECE)}
    assert set(shares) == set(ModelWeights.__struct_fields__)
    for kind, (names, shared) in shares.items():
        forest: Forest = getattr(LEARNED, kind)
        nodes = forest.text.split()
        assert {int(node.partition("<")[0]) for node in nodes if "<" in node} <= set(range(len(names)))
        assert len(forest.tables((0,) * len(shared), len(names) - len(shared)).rows) == len(names) - len(shared)
