"""The workload, the same for every contender: six chapters (five light, one heavy) and a shared helper module.

`chapters(*edits)` and `common(*edits)` give the content in a neutral form; contenders.py writes it in each tool's own
page format. `mark(chapter, cell)` in every cell is the proof of what really ran.
"""

from dataclasses import dataclass

DEPENDENTS = ("ch02", "ch04", "ch05")  # the chapters that import common.py
HEAVY = "ch06"
TRAINING_STEPS = 2200  # about 10 s on one core


@dataclass(frozen=True)
class Part:
    kind: str
    """`md` or `code`."""
    text: str


@dataclass(frozen=True)
class Chapter:
    name: str
    title: str
    parts: tuple[Part, ...]

    @property
    def cells(self) -> list[str]:
        return [part.text for part in self.parts if part.kind == "code"]


@dataclass(frozen=True)
class Edit:
    """Replace `old` by `new` in `where`; then `pages` must show `fresh`, and only `runs` may run."""

    where: str
    old: str
    new: str
    pages: tuple[str, ...] = ()
    fresh: str = ""
    runs: tuple[str, ...] = ()


EDITS = {
    "prose": Edit("ch01", "Prose revision alpha.", "Prose revision bravo.", ("ch01",), "revision bravo"),
    "code": Edit("ch01", "factor = 3", "factor = 4", ("ch01",), "check 4036", ("ch01",)),
    "common": Edit("common", "REVISION = 1", "REVISION = 2", DEPENDENTS, "helper 14002", DEPENDENTS),
    "plot": Edit(HEAVY, "palette = 5", "palette = 6", (HEAVY,), "palette 6078", (HEAVY,)),
    "raise": Edit("ch03", "width = 5", 'width = 5\nraise ValueError("boom-" + str(47 * 100 + 11))', runs=("ch03",)),
    "loop": Edit("ch01", "width = 5", "width = 5\nwhile True:\n    pass", runs=("ch01",)),
}

COMMON = '''"""Helpers that several chapters share."""
REVISION = 1


def describe(tensor):
    """One line about a tensor."""
    return f"{tuple(tensor.shape)} norm {tensor.norm().item():.2f} [helper {REVISION * 7001}]"


def banner(text):
    return f"== {text} =="
'''

LIGHT = [
    """import math

import matplotlib.pyplot as plt
import torch
from benchtrace import mark
{imports}
mark("{name}", 1)
torch.manual_seed({seed})
rows, cols = {rows}, {cols}
table = torch.randn(rows, cols)
print(table[:2, :4])
print("shape", tuple(table.shape))""",
    """mark("{name}", 2)
mean = table.mean(dim=0, keepdim=True)
spread = table.std(dim=0, keepdim=True)
standard = (table - mean) / spread
print("centred", standard.mean(dim=0).abs().max().item() < 1e-4)
gram = standard.T @ standard / (rows - 1)
values, vectors = torch.linalg.eigh(gram)
print("largest eigenvalues", values[-3:])
print("trace", round(values.sum().item(), 3))
{report}""",
    '''mark("{name}", 3)
width = 5


def smooth(signal, size):
    """A running mean along the last axis."""
    kernel = torch.ones(1, 1, size) / size
    return torch.nn.functional.conv1d(signal[:, None, :], kernel, padding=size // 2)[:, 0]


curve = torch.sin(torch.linspace(0, 4 * math.pi, 200))[None]
noisy = curve + 0.3 * torch.randn(1, 200)
print("noise before", round((noisy - curve).std().item(), 3))
print("noise after", round((smooth(noisy, width) - curve).std().item(), 3))''',
    """mark("{name}", 4)
factor = 3
print("check", factor * 1009)
point = torch.tensor([1.0, -2.0], requires_grad=True)
path = []
for step in range(40):
    height = (point ** 2 * torch.tensor([1.0, 4.0])).sum()
    slope, = torch.autograd.grad(height, point)
    path.append((step, height.item()))
    point = (point - 0.05 * slope).detach().requires_grad_()
print("first", path[0])
print("last", path[-1][0], round(path[-1][1], 6))""",
    """mark("{name}", 5)
fig, axes = plt.subplots(1, 2, figsize=(7, 3))
axes[0].plot(noisy[0].numpy(), alpha=0.4, label="noisy")
axes[0].plot(smooth(noisy, width)[0].numpy(), label="smooth")
axes[0].legend()
axes[1].semilogy([height for _, height in path])
axes[1].set_xlabel("step")
axes[1].set_title("{title}")
fig.tight_layout()
print("points drawn", noisy.numel() * 2 + len(path))
plt.show()""",
]

HEAVY_CELLS = [
    """import math
import time

import matplotlib.pyplot as plt
import torch
from benchtrace import mark

mark("{name}", 1)
torch.manual_seed(0)
torch.set_num_threads(1)
count = 2000
label = torch.arange(count) % 2
angle = torch.rand(count) * 12
turn = angle + math.pi * label
points = torch.stack([angle * turn.cos(), angle * turn.sin()], dim=1) / 12
points = points + 0.02 * torch.randn(count, 2)
print("points", tuple(points.shape))""",
    """mark("{name}", 2)
net = torch.nn.Sequential(
    torch.nn.Linear(2, 96), torch.nn.Tanh(),
    torch.nn.Linear(96, 96), torch.nn.Tanh(),
    torch.nn.Linear(96, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
print("parameters", sum(weight.numel() for weight in net.parameters()))""",
    """mark("{name}", 3)
losses = []
start = time.perf_counter()
for epoch in range({steps}):
    loss = torch.nn.functional.cross_entropy(net(points), label)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print("steps", len(losses), "final loss", round(losses[-1], 4))""",
    """mark("{name}", 4)
with torch.no_grad():
    guess = net(points).argmax(dim=1)
    axis = torch.linspace(-1.1, 1.1, 80)
    mesh = torch.cartesian_prod(axis, axis)
    field = net(mesh).softmax(dim=1)[:, 1].reshape(80, 80)
print("accuracy", round((guess == label).float().mean().item(), 3))""",
    """mark("{name}", 5)
palette = 5
print("palette", palette * 1013)
fig, axes = plt.subplots(1, 2, figsize=(7, 3))
axes[0].semilogy(losses)
axes[0].set_xlabel("step")
axes[1].contourf(axis.numpy(), axis.numpy(), field.T.numpy(), levels=palette)
axes[1].scatter(points[::8, 0], points[::8, 1], c=label[::8], s=4)
fig.tight_layout()
plt.show()""",
]

TOPICS = (
    ("ch01", "Tables and means"),
    ("ch02", "Shared descriptions"),
    ("ch03", "Smoothing a signal"),
    ("ch04", "Gradients by hand"),
    ("ch05", "Spectra of tables"),
    ("ch06", "Training on two spirals"),
)

HEADINGS = ("Setting the scene", "Looking at the numbers", "Building the tool", "Following the slope", "Drawing it")

PROSE = """## {heading}

This part of *{title}* is about one idea, and the code below says it in full.
Read the cell first, then its output: every number shown was made by the build,
so a number that looks wrong is a bug in the code and not in the typing.

The tensors stay small on purpose, with `float32` values and a fixed seed,
and nothing here needs more than one core. Three things to watch for:

* the shape of every tensor before and after the step,
* the place where `torch` keeps or drops a dimension,
* the size of the last number printed, compared with the first."""


def _apply(text: str, where: str, edits: tuple[str, ...]) -> str:
    for edit in (EDITS[name] for name in edits):
        if edit.where == where:
            text = text.replace(edit.old, edit.new)
    return text


def _chapter(number: int, name: str, title: str, edits: tuple[str, ...]) -> Chapter:
    shared = name in DEPENDENTS
    values = {
        "name": name,
        "title": title,
        "seed": number,
        "rows": 40 + 8 * number,
        "cols": 4 + number,
        "steps": TRAINING_STEPS,
        "imports": "import common\n" if shared else "",
        "report": "print(common.describe(standard))" if shared else 'print("norm", round(standard.norm().item(), 2))',
    }
    cells = HEAVY_CELLS if name == HEAVY else LIGHT
    parts = [Part("md", f"# {title}\n\nChapter {number} of six. Prose revision alpha.")]
    for heading, cell in zip(HEADINGS, cells, strict=True):
        code = cell
        for key, value in values.items():
            code = code.replace("{" + key + "}", str(value))
        parts += [Part("md", PROSE.format(heading=heading, title=title)), Part("code", code)]
    return Chapter(name, title, tuple(Part(one.kind, _apply(one.text, name, edits)) for one in parts))


def chapters(*edits: str) -> list[Chapter]:
    return [_chapter(number, name, title, edits) for number, (name, title) in enumerate(TOPICS, 1)]


def common(*edits: str) -> str:
    return _apply(COMMON, "common", edits)
