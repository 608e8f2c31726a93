"""A capacity study of some seconds for tests of its engines, and its results as bytes."""

STUDY = """\
format: pipeweaver-study/1
name: engines
tokens: 10B
plan: {dataset: vlm-mix, max-rounds: 2}
axes:
  model: dip-vlm-s
  cluster: [h100-sxm, h200-sxm]
  gpus: [8, 16]
  global-batch: [32, 64]
layouts: {cp: 1}
prices: {h100-sxm: 2.5, h200-sxm: 3.5}
planned: 1
"""
CELLS = 8


def results(folder):
    """All that a study leaves, by name; logs and run.json are of who judged it."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.parent.name != "logs" and path.name != "run.json"}
