"""Buys a resource over MCP, with only Python's standard library. The service pays, within the owner's mandate.

KEY is a project key with the scopes purse:read and purse:pay, API the URL of the service, URL the resource to buy.
"""

import json
import os
import urllib.request
import uuid

KEY = os.environ.get("KEY", "")
API = os.environ.get("API", "http://127.0.0.1:3000")
URL = os.environ.get("URL", "http://127.0.0.1:4000/weather")


def call(tool, **arguments):
    """Calls a tool over MCP's Streamable HTTP. The service has no sessions."""
    headers = {
        "Authorization": f"Bearer {KEY}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    params = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    request = urllib.request.Request(f"{API}/mcp", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=90) as response:
        result = json.loads(response.read())["result"]
    if result.get("isError"):
        raise RuntimeError(result["content"][0]["text"])
    return result["structuredContent"]


price = call("purse.quote", url=URL)["terms"]["amountUsdc"]
# The same key never pays twice, so repeat a call after a lost response. A new purchase needs a new key.
key = str(uuid.uuid4())
bought = call("purse.pay", url=URL, maxAmount=price, idempotencyKey=key)
while bought["endedAt"] is None:
    bought = call("purse.status", purchaseId=bought["purchaseId"])
print(bought["state"], bought["reason"] or bought["response"]["body"])
