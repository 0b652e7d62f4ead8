"""The nearest rows of every row of the model, by which the search tells words that mean nearly the same.

`python -m tools.model.neighbours FOLDER` reads the model in FOLDER and writes `neighbours.safetensors` beside it: for
each row its 32 nearest other rows with a cosine of at least 0.3, nearest first, as `ids` (U16) and `cosines` (U8, in
steps of 1/255); a cosine of 0 ends a shorter list. The cosines are of the int8 rows, which is what is shipped. It
takes about a minute on two cores and 1 GB.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from tools.model.reference import WEIGHTS, Array, StaticModel

NEIGHBOURS = "neighbours.safetensors"
FORMAT = 1
NEAREST = 32
LEAST_COSINE = 0.3
STEP = 1 / 255
AT_ONCE = 1024  # rows compared with all others in one product


def nearest(table: Array) -> tuple[Array, Array]:
    """Numbers and cosines (in steps) of the nearest rows of each row."""
    rows = table.astype(np.float32)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    ids = np.zeros((len(rows), NEAREST), dtype="<u2")
    cosines = np.zeros((len(rows), NEAREST), dtype=np.uint8)
    for start in range(0, len(rows), AT_ONCE):
        near = rows[start : start + AT_ONCE] @ rows.T
        near[np.arange(len(near)), start + np.arange(len(near))] = -1.0
        found = np.sort(np.argpartition(-near, NEAREST, axis=1)[:, :NEAREST], axis=1)
        values = np.take_along_axis(near, found, axis=1)
        # Of rows equally near the first, so that the file can be made again.
        order = np.argsort(-values, axis=1, kind="stable")
        found, values = np.take_along_axis(found, order, axis=1), np.take_along_axis(values, order, axis=1)
        kept = values >= LEAST_COSINE
        ids[start : start + len(near)] = np.where(kept, found, 0)
        cosines[start : start + len(near)] = np.where(kept, np.rint(values.clip(0, 1) / STEP), 0)
    return ids, cosines


def write(folder: Path) -> None:
    """Write the neighbours of the model in `folder`."""
    model = StaticModel.load(folder)
    ids, cosines = nearest(model.table)
    header = json.dumps(
        {
            "__metadata__": {
                "format": str(FORMAT),
                "model": hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest(),
            },
            "ids": {"dtype": "U16", "shape": list(ids.shape), "data_offsets": [0, ids.nbytes]},
            "cosines": {
                "dtype": "U8",
                "shape": list(cosines.shape),
                "data_offsets": [ids.nbytes, ids.nbytes + cosines.nbytes],
            },
        },
        separators=(",", ":"),
    ).encode()
    header += b" " * (-len(header) % 8)
    data = len(header).to_bytes(8, "little") + header + ids.tobytes() + cosines.tobytes()
    (folder / NEIGHBOURS).write_bytes(data)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.model.neighbours FOLDER")
    write(Path(sys.argv[1]))
