"""Reads a run's event files with TensorBoard itself and prints what it sees as JSON.

Usage: read_tensorboard.py RUN_DIR
"""

import io
import json
import pathlib
import sys

from google.protobuf import json_format
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams import plugin_data_pb2

run = pathlib.Path(sys.argv[1])
everything = {kind: 0 for kind in ["scalars", "histograms", "images", "tensors"]}
events = EventAccumulator(str(run / "tensorboard"), size_guidance=everything)
events.Reload()
tags = events.Tags()


def picture(tag, event):
    """What is seen, and whether the file of the same step and name shows the same pixels."""
    seen = Image.open(io.BytesIO(event.encoded_image_string))
    file = Image.open(run / "figures" / f"step_{event.step:08}_{tag}.png")
    stated = (event.width, event.height)
    return {
        "step": event.step,
        "size": list(seen.size),
        "size_is_stated": stated == seen.size,
        "same_as_file": seen.tobytes() == file.tobytes(),
    }


def hyper_parameters(name):
    content = events.SummaryMetadata(f"_hparams_/{name}").plugin_data.content
    return json_format.MessageToDict(plugin_data_pb2.HParamsPluginData.FromString(content))


histogram = lambda value: {
    "num": value.num,
    "sum": value.sum,
    "min": value.min,
    "max": value.max,
    "counted": sum(value.bucket),
    "last_limit": value.bucket_limit[-1],
}
print(
    json.dumps(
        {
            "scalars": {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in tags["scalars"]},
            "histograms": {
                tag: [[e.step, histogram(e.histogram_value)] for e in events.Histograms(tag)]
                for tag in tags["histograms"]
            },
            "images": {tag: [picture(tag, e) for e in events.Images(tag)] for tag in tags["images"]},
            "text": {
                tag: events.Tensors(tag)[0].tensor_proto.string_val[0].decode()
                for tag in events.PluginTagToContent("text")
            },
            "start": hyper_parameters("session_start_info"),
            "end": hyper_parameters("session_end_info"),
        }
    )
)
