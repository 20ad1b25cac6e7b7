"""Asks the backend of TensorBoard's HParams tab for the sessions below a folder and prints them as JSON.

Usage: read_hparams.py FOLDER
"""

import json
import sys

from google.protobuf import json_format
from tensorboard.backend.event_processing import data_provider, plugin_event_multiplexer
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import api_pb2, backend_context, list_session_groups
from tensorboard.context import RequestContext

multiplexer = plugin_event_multiplexer.EventMultiplexer()
multiplexer.AddRunsFromDirectory(sys.argv[1])
multiplexer.Reload()
provider = data_provider.MultiplexerDataProvider(multiplexer, sys.argv[1])
context = backend_context.Context(base_plugin.TBContext(data_provider=provider))
request = RequestContext()
metadata = context.hparams_metadata(request, "")
experiment = context.experiment_from_metadata(
    request,
    "",
    include_metrics=True,
    hparams_run_to_tag_to_content=metadata,
    data_provider_hparams=context.hparams_from_data_provider(request, "", limit=None),
)
groups = list_session_groups.Handler(
    request_context=request,
    backend_context=context,
    experiment_id="",
    request=api_pb2.ListSessionGroupsRequest(
        allowed_statuses=[api_pb2.STATUS_SUCCESS, api_pb2.STATUS_UNKNOWN, api_pb2.STATUS_RUNNING],
        col_params=[api_pb2.ColParams(metric=info.name) for info in experiment.metric_infos],
        slice_size=100,
    ),
).run()
print(json.dumps(json_format.MessageToDict(groups)))
