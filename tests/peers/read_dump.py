"""Reads a particle dump with h5py and weights with safetensors, and prints what it sees as JSON.

Usage: read_dump.py DUMP.h5 EXPORT.npy WEIGHTS.safetensors
"""

import json
import sys

import h5py
import numpy
from safetensors.numpy import load_file

with h5py.File(sys.argv[1]) as file:
    clouds = file["particles"]
    values = clouds[...]
    attributes = {name: getattr(value, "item", lambda: value)() for name, value in clouds.attrs.items()}
    seen = {
        "shape": values.shape,
        "type": str(values.dtype),
        "chunks": clouds.chunks,
        "compression": clouds.compression,
        "shuffle": bool(clouds.shuffle),
        "checksum": bool(clouds.fletcher32),
        "indices": file["indices"][...].tolist(),
        "attributes": attributes,
        "mean": float(values.mean(dtype="f8")),
        "std": float(values.std(dtype="f8")),
        "spread": float(numpy.sqrt(values.var(axis=1, ddof=1, dtype="f8").mean())),
    }
exported = numpy.load(sys.argv[2])
seen["export_is_the_same"] = exported.dtype == values.dtype and bool((exported == values).all())
seen["weights"] = {name: [str(tensor.dtype), tensor.shape] for name, tensor in load_file(sys.argv[3]).items()}
print(json.dumps(seen))
