"""Python functions as an agent's tools: declared by their signatures, called with what a model wrote."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

import msgspec
from msgspec import Struct

from tenure.errors import InputError


class FunctionTool(Struct, frozen=True, kw_only=True):
    """A function, and how a request declares it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    arguments: type[Struct]  # one field for each parameter
    function: Callable[..., Any]

    def bind(self, arguments: str) -> dict[str, Any]:
        """A call's arguments, of the types that the function declares. Raises InputError for what does not fit them."""
        try:
            given = msgspec.json.decode(arguments or "{}", type=self.arguments, strict=False)
        except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
            raise InputError(
                self.name, f"arguments that do not fit ({error})", ", ".join(self.arguments.__struct_fields__)
            ) from error
        return {name: getattr(given, name) for name in self.arguments.__struct_fields__}


def function_tool(name: str, function: Callable[..., Any]) -> FunctionTool:
    """A function as a tool: parameters by their annotations (`Annotated[int, msgspec.Meta(description=…)]` too), its docstring as the description.

    Raises InputError for one that cannot be called with named arguments, or with types that JSON cannot write.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
        hints = get_type_hints(function, include_extras=True)
    except (TypeError, ValueError, NameError) as error:
        raise InputError(f"tool {name!r}", f"a signature that cannot be read ({error})", "a function with annotations") from error
    fields: list[Any] = []
    for each in parameters:
        if each.kind not in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            raise InputError(f"tool {name!r}", f"the parameter {str(each)!r}", "parameters that can be given by name")
        typed = (each.name, hints.get(each.name, Any))
        fields.append(typed if each.default is each.empty else (*typed, each.default))
    try:
        arguments = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
        _, components = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"tool {name!r}", f"parameters that cannot be written as JSON ({error})", "types that JSON has"
        ) from error
    own = components.pop("Arguments")
    own.pop("title", None)
    schema = own | ({"$defs": components} if components else {})
    return FunctionTool(
        name=name, description=inspect.getdoc(function) or "", schema=schema, arguments=arguments, function=function
    )


def text_of(answer: object) -> str:
    """What a function returned, as a result's text. Raises InputError for what JSON cannot write."""
    if isinstance(answer, str):
        return answer
    try:
        return "" if answer is None else msgspec.json.encode(answer).decode()
    except (TypeError, msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InputError(
            "tool", f"an answer of the type {type(answer).__name__} ({error})", "a text, or what JSON can write"
        ) from error
