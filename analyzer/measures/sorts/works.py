"""What the work is: serving, inference, training, graph capture, a microbenchmark, a cut-out of a step."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from analyzer.measures.sorts.engines import SERVING
from analyzer.measures.sorts.sign import Names, Sign, claims, fact, names_of_run
from analyzer.model.kind import Kind
from analyzer.model.run import Run
from analyzer.once import once
from analyzer.schema.workload import Fact

WORKS = (
    Sign(
        r"^\[param\|",
        "host",
        "microbenchmark",
        "certain",
        "a range of PARAM's benchmarks",
        ("[param|torch.add|0|0|0]",),
    ),
    Sign(r"^Optimizer\.step#", "host", "training", "certain", "a step of an optimizer", ("Optimizer.step#SGD.step",)),
    Sign(
        r"^Gradients/", "kernel", "training", "certain", "MindSpore's backward pass", ("Gradients/Default/gradConv2D",)
    ),
    Sign(
        r"^capture_\d+_\w+$", "host", "graph capture", "likely", "an engine's range of a capture", ("capture_32_FULL",)
    ),
    Sign(
        r"^autograd::engine::evaluate_function|AccumulateGrad|^[A-Z]\w+Backward\d*$|^(?:## )?backward(?: ##)?$",
        "host",
        "training",
        "likely",
        "a backward pass",
        ("AddmmBackward0", "## backward ##", "torch::autograd::AccumulateGrad"),
    ),
    Sign(
        r"(?:norm|softmax|gelu|pool\w*)_backward_|igemm_(?:bwd|wrw)|flash_bwd|wgrad|_bwd_kernel|_backward_cuda",
        "kernel",
        "training",
        "likely",
        "kernels of a backward pass",
        ("igemm_wrw_gtcx2_nhwc_fp16", "void flash_bwd_dq_dk_dv_loop_kernel<int>"),
    ),
    Sign(
        r"^Optimizer\.zero_grad#", "host", "training", "likely", "gradients are cleared", ("Optimizer.zero_grad#SGD",)
    ),
)
"""Signs of what the work is."""

SCHEDULED = Sign(
    r"^execute_|^step\[|^(?:prefill|decode)\[bs=",
    "host",
    "serving",
    "likely",
    "steps of an engine",
    ("step[DECODE bs=16]",),
)

LAYERS = 2
"""Calls of attention up to which a recording holds a layer, not a model: some count one call as two kernels."""
FEW_KERNELS = 4
"""Kernels up to which a recording with matrix products is cut out of something."""
MANY_NAMES = 5
"""Distinct names from which the lack of a model's layers says something."""
_PRODUCTS = ("gemm", "moe_gemm", "convolution", "attention", "mla")


@dataclass(frozen=True, slots=True)
class _Content:
    """What the device, or a host without one, was given to do; movement and collectives are not in `kernels`."""

    subclasses: Counter[str]
    names: int
    kernels: int
    moved: int
    collectives: int
    marked: int
    ranks: int
    stage: str

    @property
    def has_products(self) -> bool:
        return any(self.subclasses[word] for word in _PRODUCTS)

    @property
    def layers(self) -> int:
        """Calls of attention, written out as a softmax beside norms where no kernel does the whole."""
        attention = self.subclasses["attention"] + self.subclasses["mla"]
        return max(attention, self.subclasses["softmax"] if self.subclasses["norm"] else 0)

    @property
    def is_model(self) -> bool:
        return (
            self.layers > LAYERS * self.ranks or self.subclasses["convolution"] > 1 or self.subclasses["embedding"] > 0
        )


def work(run: Run, engine: Fact) -> Fact:
    """As run.json states, as a sign says, else by what the kernels amount to."""
    stated = run.workload.declared.get("work", "")
    if stated:
        return Fact(stated, "run.json states it", "declared")
    names = names_of_run(run)
    hits = claims(WORKS, names)
    if hits and hits[0][0].sure == "certain":
        return fact(*hits[0])
    seen = {sign.says: (sign, name) for sign, name in reversed(hits)}
    content = _content(run)
    if "graph capture" in seen and not claims((SCHEDULED,), names):
        return fact(*seen["graph capture"])
    if cut := _cut(content, names):
        return cut
    if engine.value in SERVING:
        return _served(run, engine, content)
    if "training" in seen:
        if content.has_products or content.kernels == 0:
            return fact(*seen["training"])
        return Fact("microbenchmark", "a backward pass without any matrix product or convolution", "likely")
    return _forward(content, engine)


def trains(run: Run) -> bool:
    """Whether anything of training is in the recording, whatever the whole is."""
    return any(sign.says == "training" for sign, _ in claims(WORKS, names_of_run(run)))


def _cut(content: _Content, names: Names) -> Fact | None:
    """Whether most of the step is missing, as the recording itself shows."""
    if claims((SCHEDULED,), names):
        return None
    if content.collectives and not content.kernels + content.moved:
        evidence = "nothing but collectives is recorded"
    elif content.marked and not content.collectives:
        evidence = "ranges of collectives without their kernels"
    elif content.ranks == 1 and content.kernels <= FEW_KERNELS and (content.has_products or content.stage):
        evidence = f"{content.kernels} kernels"
    else:
        return None
    return Fact("cut-out of a step", evidence, "likely")


def _served(run: Run, engine: Fact, content: _Content) -> Fact:
    """An engine's work: serving, unless no step is marked and no whole model runs."""
    whole = content.is_model or content.subclasses["other"] or claims((SCHEDULED,), names_of_run(run))
    if whole or not content.kernels + content.moved:
        return Fact("serving", f"{engine.value} serves requests", engine.sure)
    return Fact("cut-out of a step", f"{engine.value}, and no more than a layer of its model", "likely")


def _forward(content: _Content, engine: Fact) -> Fact:
    """Work without a backward pass: a whole model, or an operation under test."""
    if content.subclasses["other"] and content.subclasses["other"] == content.kernels:
        return Fact()
    if engine.value == "diffusion":
        return Fact("inference", "a diffusion pipeline, and no backward pass", "likely")
    is_alone = content.ranks == 1 and not content.collectives
    if is_alone and len(content.subclasses) == 1:
        return Fact("microbenchmark", f"nothing but {next(iter(content.subclasses))}", "likely")
    if content.is_model and content.has_products:
        return Fact("inference", "the layers of a model, and no backward pass", "likely")
    if not content.has_products and is_alone:
        return Fact("microbenchmark", "no matrix product, attention or convolution", "likely")
    if content.names >= MANY_NAMES:
        return Fact("microbenchmark", "matrix products, and no model around them", "likely")
    return Fact()


@once
def _content(run: Run) -> _Content:
    subclasses: Counter[str] = Counter()
    names, moved, collectives, marked = set[str](), 0, 0, 0
    for trace in run.traces:
        kind = trace.activities.kind
        compute = trace.activities.take(kind == Kind.COMPUTE)
        words = compute.subclass
        counts = np.bincount(words.codes, minlength=len(words.values)).tolist()
        subclasses += Counter(dict(zip(words.values, counts, strict=True)))
        names |= {compute.name.values[code] for code in np.unique(compute.name.codes).tolist()}
        moved += int((kind == Kind.MOVEMENT).sum())
        collectives += int((kind == Kind.COMMUNICATION).sum())
        marked += any(name.startswith("nccl:") for name in trace.annotations.name.values)
    return _Content(
        subclasses=+subclasses,
        names=len(names),
        kernels=sum(subclasses.values()) - subclasses["framework"],
        moved=moved,
        collectives=collectives,
        marked=marked,
        ranks=len(run.traces),
        stage=run.traces[0].origin.stage,
    )
