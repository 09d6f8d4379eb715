"""Generates a client from a server's description and uses it. Arguments: the server's address, an admin token.

Run in an empty directory, with openapi-python-client and what its clients import on PYTHONPATH.
"""

import io
import subprocess
import sys

URL, TOKEN = sys.argv[1:]

# Its hooks would format the code that it writes, with a tool that is not needed here. Media types that it does not know
# are bytes and text to it.
with open("config.yml", "w") as config:
    config.write(
        """post_hooks: []
package_name_override: hearth_client
content_type_overrides:
  "*/*": application/octet-stream
  application/zip: application/octet-stream
  application/x-ndjson: text/plain
  application/openmetrics-text: text/plain
  text/x-python: application/octet-stream
"""
    )
GENERATE = ["openapi_python_client", "generate", "--url", f"{URL}/openapi.json", "--meta", "none", "--config", "config.yml"]
generated = subprocess.run(
    [sys.executable, "-B", "-m", *GENERATE, "--output-path", "hearth_client"], capture_output=True, text=True
)
# What it cannot read it leaves out, with a warning.
said = generated.stdout + generated.stderr
assert generated.returncode == 0 and "WARNING" not in said and "ERROR" not in said, said

sys.path.insert(0, ".")
from hearth_client import AuthenticatedClient  # noqa: E402
from hearth_client.api.functions import (  # noqa: E402
    activate_version,
    create_function,
    delete_function,
    get_function,
    get_version_code,
    list_functions,
    list_versions,
    patch_function,
    put_code,
)
from hearth_client.api.history import function_stats, get_invocation, list_invocations  # noqa: E402
from hearth_client.api.invocation import invoke_function, trigger_post_path  # noqa: E402
from hearth_client.api.node import get_node, get_retention, patch_retention, readyz  # noqa: E402
from hearth_client.api.accounts import list_audit  # noqa: E402
from hearth_client.api.tokens import create_token, delete_token, list_tokens  # noqa: E402
from hearth_client import models  # noqa: E402
from hearth_client.types import File  # noqa: E402

client = AuthenticatedClient(base_url=URL, token=TOKEN, raise_on_unexpected_status=True)
CODE = "def handler(event, context):\n    print('a line')\n    return {'hello': event}\n"


def of(kind, answer):
    assert isinstance(answer, kind), answer
    return answer


assert of(models.Health, readyz.sync(client=client)).status == "ok"
assert of(models.Node, get_node.sync(client=client)).version

body = models.CreateFunction.from_dict({"name": "hello", "runtime": "python3", "code": {"inline": CODE}})
made = of(models.FunctionView, create_function.sync(client=client, body=body))
assert (made.name, made.active_version, made.runtime) == ("hello", 1, models.Runtime.PYTHON3)
again = of(models.Problem, create_function.sync(client=client, body=body))
assert (again.status, again.code) == (409, models.ProblemCode.ALREADY_EXISTS)

result = invoke_function.sync_detailed("hello", client=client, body={"name": "Ada"})
assert result.status_code == 200 and result.parsed == {"hello": {"name": "Ada"}}, result
page = list_invocations.sync("hello", client=client, limit=10, status=models.Status.SUCCEEDED)
(record,) = of(models.PageInvocationRecord, page).items
assert record.status == models.Status.SUCCEEDED and record.start == models.StartKind.FORK, record
detail = of(models.InvocationDetail, get_invocation.sync(record.id, client=client))
assert detail.status == models.Status.SUCCEEDED and detail.logs[0].text == "a line", detail
assert of(models.Stats, function_stats.sync("hello", client=client)).count == 1

body = models.PatchFunction.from_dict({"memory_mb": 256, "env": {"A": "b"}})
patched = of(models.FunctionView, patch_function.sync("hello", client=client, body=body))
assert (patched.memory_mb, patched.active_version) == (256, 2)
body = models.CodeBody.from_dict({"code": {"inline": CODE + "# changed\n"}})
assert of(models.FunctionView, put_code.sync("hello", client=client, body=body)).active_version == 3
assert of(models.FunctionView, activate_version.sync("hello", 1, client=client)).active_version == 1
assert len(of(models.FunctionDetail, get_function.sync("hello", client=client)).versions) == 3
assert len(list_versions.sync("hello", client=client).items) == 3
assert [function.name for function in list_functions.sync(client=client).items] == ["hello"]

kept = of(models.RetentionStatus, get_retention.sync(client=client))
assert kept.settings.logs_days == 14 and kept.invocations.count == 1, kept
kept = patch_retention.sync(client=client, body=models.PatchRetention(logs_days=3))
assert of(models.RetentionStatus, kept).settings.logs_days == 3

token = create_token.sync(client=client, body=models.CreateToken(name="ci", rights=[models.Right.READ]))
assert of(models.CreatedToken, token).token
assert len(list_tokens.sync(client=client).items) == 2
assert delete_token.sync_detailed(token.id, client=client).status_code == 204
actions = {record.action for record in list_audit.sync(client=client).items}
assert {"function.create", "retention.change", "token.create"} <= actions, actions

zipped = get_version_code.sync("hello", 1, client=client)
assert of(File, zipped).payload.read(2) == b"PK"
called = trigger_post_path.sync_detailed("hello", "a", client=client, body=File(io.BytesIO(b"text")))
assert called.status_code == 200 and b"hello" in called.content, called

assert delete_function.sync_detailed("hello", client=client).status_code == 204
assert of(models.Problem, get_function.sync("hello", client=client)).code == models.ProblemCode.NOT_FOUND
print("ok")
