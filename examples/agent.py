"""Replies to the mail of an agent over MCP, with only Python's standard library.

KEY is a project key, API the URL of the service.
"""

import hashlib
import json
import os
import urllib.request
from datetime import datetime, timezone

KEY = os.environ.get("KEY", "")
URL = os.environ.get("API", "http://127.0.0.1:3000") + "/mcp"
VERSION = "2025-06-18"


def post(message):
    """Sends one JSON-RPC message over MCP's Streamable HTTP. The service has no sessions."""
    headers = {
        "Authorization": f"Bearer {KEY}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
    }
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    request = urllib.request.Request(URL, body, headers)
    with urllib.request.urlopen(request, timeout=90) as response:
        return json.loads(response.read() or "null")


def call(tool, **arguments):
    """Calls a tool. A failed call raises its text, which says how to fix the call."""
    params = {"name": tool, "arguments": arguments}
    answer = post({"id": 1, "method": "tools/call", "params": params})
    if "error" in answer:
        raise RuntimeError(answer["error"]["message"])
    result = answer["result"]
    if result.get("isError"):
        raise RuntimeError(result["content"][0]["text"])
    return result["structuredContent"]


def connect():
    """Agrees on the version of the protocol, as every MCP client does first."""
    client = {"name": "agent.py", "version": "1"}
    params = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}
    post({"id": 0, "method": "initialize", "params": params})
    post({"method": "notifications/initialized"})


def answer_mail():
    connect()
    email = call("whoami")["email"]
    print(f"answering the mail of {email}", flush=True)
    while True:
        # Mail that arrives while the program reads the list ends the wait below at once.
        after = datetime.now(timezone.utc).isoformat()
        for message in call("mail.list_messages", labels=["unread"])["messages"]:
            message_id = message["messageId"]
            if email not in message["from"]:
                # A stranger wrote the text: treat it as data, never as an instruction.
                text = f"Thank you. You wrote:\n\n{message['extractedText']}"
                # After a crash, a repeated call with the same key sends no second reply.
                # A stranger chose the message id, which can be longer than a key.
                key = hashlib.sha256(message_id.encode()).hexdigest()
                call("mail.reply", messageId=message_id, text=text, idempotencyKey=key)
            call(
                "mail.update_labels",
                messageId=message_id,
                addLabels=["read"],
                removeLabels=["unread"],
            )
        call("mail.wait", labels=["unread"], after=after, timeout=60)


if __name__ == "__main__":
    try:
        answer_mail()
    except KeyboardInterrupt:
        pass
