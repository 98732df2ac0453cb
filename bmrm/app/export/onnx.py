"""ONNX, in double precision: operators of the standard set alone, so that every runtime has them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import IO, Any, ClassVar

import numpy as np

from bmrm.app.export import register
from bmrm.app.export._core.exported import (
    EXPONENTIAL,
    NAMES,
    SEVERAL_OUTPUTS,
    SIGMOID,
    TEXT_LABELS,
    UNIT_NORM,
    Exported,
)
from bmrm.problem import IncompatibleError

OPSET, IR = 17, 8
"""Versions of the operators and of the file, of 2022: later runtimes read them."""


@register("onnx")
@dataclass(frozen=True)
class Onnx:
    """An ONNX graph in double precision: X (rows, features) -> scores, label or value, probabilities if any."""

    says: ClassVar[frozenset[str]] = frozenset({NAMES, UNIT_NORM, TEXT_LABELS, EXPONENTIAL, SEVERAL_OUTPUTS, SIGMOID})
    instead: ClassVar[str] = "; json says all of these"

    def write(self, model: Exported, stream: IO[bytes]) -> None:
        """The content of the file; IncompatibleError without the library onnx."""
        try:
            import onnx
        except ImportError as error:
            raise IncompatibleError(
                "export format onnx needs onnx, which is not installed; pip install 'bmrm[onnx]'"
            ) from error
        graph = _Graph(onnx)
        graph.scores(model)
        graph.predictions(model)
        graph.probabilities(model)
        stream.write(graph.model(model).SerializeToString())


class _Graph:
    """A graph that grows by one operator at a time."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []

    def constant(self, values: Any) -> str:
        """The name of an array."""
        name = f"c{len(self.constants)}"
        array = np.asarray(values)
        if array.dtype.kind == "U":
            helper, text = self.onnx.helper, [label.encode() for label in array.tolist()]
            self.constants.append(helper.make_tensor(name, self.onnx.TensorProto.STRING, array.shape, text))
        else:
            self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """The name of what an operator gives."""
        found = name or f"v{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, list(inputs), [found], **attributes))
        return found

    def output(self, name: str, kind: int, *shape: Any) -> None:
        """Declare a result."""
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, ["rows", *shape]))

    def scores(self, model: Exported) -> None:
        """X weights + intercept; (rows, scores)."""
        rows = "X"
        if model.unit_norm:
            square = self.add("ReduceSum", self.add("Mul", rows, rows), self.constant(np.array([1])), keepdims=1)
            norm = self.add("Sqrt", square)
            one, zero = self.constant(np.array(1.0)), self.constant(np.array(0.0))
            rows = self.add("Div", rows, self.add("Where", self.add("Equal", norm, zero), one, norm))
        product = self.add("MatMul", rows, self.constant(model.weights))
        self.add("Add", product, self.constant(model.intercept), name="scores")
        self.output("scores", self.onnx.TensorProto.DOUBLE, model.scores)

    def predictions(self, model: Exported) -> None:
        """The label of each row, (rows,), or its values, (rows, scores)."""
        if model.predicts in ("score", "exponential"):
            self.add("Exp" if model.predicts == "exponential" else "Identity", "scores", name="value")
            self.output("value", self.onnx.TensorProto.DOUBLE, model.scores)
            return
        labels = model.labels
        if labels.dtype.kind in "mM":
            labels = labels.astype(np.str_)
        elif labels.dtype.kind in "iu":
            labels = labels.astype(np.int64)
        elif labels.dtype.kind == "f":
            labels = labels.astype(np.float64)
        kinds = {"U": "STRING", "b": "BOOL", "i": "INT64", "f": "DOUBLE"}
        if model.predicts == "sign":
            above = self.add("Greater", "scores", self.constant(np.array(0.0)))
            place = self.add("Squeeze", self.add("Cast", above, to=7), self.constant(np.array([1])))
        else:
            place = self.add("ArgMax", "scores", axis=1, keepdims=0)
        self.add("Gather", self.constant(labels), place, name="label")
        self.output("label", getattr(self.onnx.TensorProto, kinds[labels.dtype.kind]))

    def probabilities(self, model: Exported) -> None:
        """Of the labels, (rows, labels)."""
        form = model.probabilities
        if form is None:
            return
        if form.form == "softmax":
            self.add("Softmax", "scores", name="probabilities", axis=1)
        elif form.form == "sigmoid":
            self.sigmoids(np.array(form.lines), model.scores)
        else:
            one, half = self.constant(np.array(1.0)), self.constant(np.array([[-0.5, 0.5]]))
            near = self.add("Clip", "scores", self.constant(np.array(-1.0)), one)
            middle = self.constant(np.array(0.5))
            self.add("Add", self.add("MatMul", near, half), middle, name="probabilities")
        self.output("probabilities", self.onnx.TensorProto.DOUBLE, len(model.labels))

    def sigmoids(self, lines: Any, scores: int) -> None:
        """1 / (1 + exp(-(a f + b))) of one curve and the rest, or of several divided by their sum."""
        slopes, offsets = lines.T
        if len(lines) == 1:
            ends = np.array([-1.0, 1.0])  # of two scores the second less the first
            table = slopes * (ends[None, :] if scores == 1 else ends[:, None] * ends[None, :])
            product = self.add("MatMul", "scores", self.constant(table))
            self.add("Sigmoid", self.add("Add", product, self.constant(offsets * ends)), name="probabilities")
            return
        product = self.add("Mul", "scores", self.constant(slopes))
        each = self.add("Sigmoid", self.add("Add", product, self.constant(offsets)))
        total = self.add("ReduceSum", each, self.constant(np.array([1])), keepdims=1)
        none = self.add("Equal", total, self.constant(np.array(0.0)))
        equal = self.constant(np.array(1.0 / len(lines)))
        self.add("Where", none, equal, self.add("Div", each, total), name="probabilities")

    def model(self, model: Exported) -> Any:
        """All of it, checked."""
        helper, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        inputs = [helper.make_tensor_value_info("X", double, ["rows", model.dim])]
        graph = helper.make_graph(self.nodes, "bmrm", inputs, self.outputs, self.constants)
        opsets = [helper.make_opsetid("", OPSET)]
        made = helper.make_model(graph, producer_name="bmrm", opset_imports=opsets, ir_version=IR)
        made.doc_string = model.title
        if model.names is not None:
            helper.set_model_props(made, {"feature_names": json.dumps(list(model.names))})
        self.onnx.checker.check_model(made)
        return made
