"""A small builder of ONNX graphs; needs the extra `onnx`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tercet.errors import TercetError

# Attention is an operator from here on.
OPSET = 23
# The version of the file format that goes with the opset.
IR_VERSION = 11
MICROSOFT = "com.microsoft"
TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
ACTIVATIONS: dict[str, tuple[str, dict[str, str]]] = {
    "relu": ("Relu", {}),
    "tanh": ("Tanh", {}),
    "gelu": ("Gelu", {}),
    "gelu_new": ("Gelu", {"approximate": "tanh"}),
}
_SHORTEST = 1e-12

Array = NDArray[np.generic]
Shape = Sequence[int | str]


class Graph:
    """Nodes and constants, each named when it is added; a value is referred to by its name."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[TensorProto] = []
        self._integers: dict[tuple[int, ...], str] = {}
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []

    def input(self, name: str, dtype: str, shape: Shape) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, TYPES[dtype], shape))
        return name

    def output(self, name: str, value: str, shape: Shape) -> None:
        """Declare a float32 value as an output under a name."""
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def constant(self, values: Array) -> str:
        name = f"constant{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.asarray(values, order="C"), name))
        return name

    def integers(self, *values: int) -> str:
        """An int64 constant [values], shared by equal values."""
        if values not in self._integers:
            self._integers[values] = self.constant(np.array(values, np.int64))
        return self._integers[values]

    def number(self, value: float) -> str:
        """A float32 constant [1]."""
        return self.constant(np.array([value], np.float32))

    def add(self, kind: str, *inputs: str, domain: str = "", **options: Any) -> str:
        """Add a node with one output."""
        (value,) = self.split(kind, *inputs, count=1, domain=domain, **options)
        return value

    def split(
        self, kind: str, *inputs: str, count: int, domain: str = "", **options: Any
    ) -> list[str]:
        """Add a node with several outputs."""
        name = f"{kind}{len(self._nodes)}"
        values = [f"{name}.{index}" for index in range(count)]
        self._nodes.append(
            helper.make_node(kind, inputs, values, name=name, domain=domain, **options)
        )
        return values

    def linear(self, weight: Array, bias: Array, vectors: str) -> str:
        """A linear layer: weight [outputs, inputs], bias [outputs], vectors [rows, inputs]."""
        return self.add("Gemm", vectors, self.constant(weight.T), self.constant(bias))

    def activation(self, name: str, vectors: str) -> str:
        """Apply an activation function by its name in recipes and config.json."""
        if name not in ACTIVATIONS:
            known = ", ".join(ACTIVATIONS)
            raise TercetError(
                f"Activation `{name}` cannot be exported to ONNX: use one of {known}."
            )
        kind, options = ACTIVATIONS[name]
        return self.add(kind, vectors, **options)

    def unit(self, vectors: str) -> str:
        """Vectors [rows, width] at length 1; a zero vector stays zero."""
        norms = self.add("ReduceL2", vectors, self.integers(1), keepdims=1)
        is_zero = self.add("LessOrEqual", norms, self.number(_SHORTEST))
        norms = self.add("Where", is_zero, self.number(np.inf), norms)
        return self.add("Div", vectors, norms)

    def model(self, name: str, **properties: object) -> ModelProto:
        """The whole model; properties are stored in it as text."""
        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, initializer=self._constants
        )
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="tercet"
        )
        helper.set_model_props(model, {key: str(value) for key, value in properties.items()})
        return model
