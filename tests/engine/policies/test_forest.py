from hypothesis import given
from hypothesis import strategies as st

from tenure.engine.policies.graph.forest import Chances, Forest
from tenure.engine.policies.graph.learned import LEARNED
from tenure.engine.policies.graph.sight import ANCHOR_FEATURES, LINE_FEATURES

WIDTH = 4
LEAF = st.integers(-2_000, 2_000).map(str)
TREES = st.recursive(
    LEAF,
    lambda inner: st.builds(
        lambda feature, value, left, right: f"{feature}<{value} {left} {right}",
        st.integers(0, WIDTH - 1),
        st.integers(0, 5),
        inner,
        inner,
    ),
    max_leaves=8,
)


def test_a_tree_sends_what_is_no_greater_to_the_left_and_scores_add_up() -> None:
    chances = Chances(Forest("0<3 1000 -1000 500"))
    assert chances[3, 0] > 0.8
    assert round(chances[3, 0], 6) == round(1 / (1 + 2.718281828459045**-1.5), 6)
    assert round(chances[4, 0], 6) == round(1 / (1 + 2.718281828459045**0.5), 6)


@given(st.lists(TREES, min_size=1, max_size=4), st.tuples(*[st.integers(0, 6)] * WIDTH), st.integers(0, WIDTH))
def test_what_is_worked_out_for_the_first_features_changes_no_chance(
    trees: list[str], features: tuple[int, ...], common: int
) -> None:
    forest = Forest("\n".join(trees))
    assert Chances(forest, common)[features] == Chances(forest)[features]


def test_what_was_learned_asks_for_features_that_there_are() -> None:
    for forest, names in ((LEARNED.anchor, ANCHOR_FEATURES), (LEARNED.line, LINE_FEATURES)):
        trees = forest.grown()
        assert len(trees) >= 20
        assert {tree[place] for tree in trees for place in range(0, len(tree), 4)} <= {-1, *range(len(names))}
