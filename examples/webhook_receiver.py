"""Receives payment webhooks and checks them with only Python's standard library.

WEBHOOK_SECRET is the endpoint's `whsec_…`, API the URL of the service.
The Ed25519 below shows the arithmetic of RFC 8032. With the package `cryptography` the check is one call:
Ed25519PublicKey.from_public_bytes(key).verify(signature, text).
"""

import base64
import hashlib
import hmac
import json
import os
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The receiver does not start without a secret, because anyone could sign with an empty secret.
SECRET = os.environ["WEBHOOK_SECRET"].encode()
if not SECRET:
    raise SystemExit("WEBHOOK_SECRET must not be empty")
API = os.environ.get("API", "http://127.0.0.1:3000")
PORT = int(os.environ.get("PORT", "4006"))
BODY_MAX_BYTES = 65536

# The ids of the payments that the program has already handled. The header X-Service-Idempotency-Key is not signed, so
# it proves no repeat. In production, store the payment ids in your database.
handled = set()
lock = threading.Lock()


def read_keys():
    """Reads the public keys of receipts. The service may add a key at any time, so the program keeps no copy.

    Never take the key from the receipt: anyone can sign with their own key.
    """
    with urllib.request.urlopen(f"{API}/.well-known/jwks.json", timeout=30) as answer:
        # The keys are base64url without padding (RFC 8037).
        return [base64.urlsafe_b64decode(key["x"] + "=") for key in json.load(answer)["keys"]]


# The curve of RFC 8032, section 5.1: -x² + y² = 1 + d x² y² over the integers modulo P.
P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
ORDER = 2**252 + 27742317777372353535851937790883648493


def recovered(encoded):
    """Returns the curve point that 32 bytes encode: y, and the sign of x in the highest bit."""
    number = int.from_bytes(encoded, "little")
    y, sign = number % 2**255, number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if y >= P or x * x % P != square:
        raise ValueError("no point of the curve")
    return (P - x if x % 2 != sign else x, y)


def add(one, other):
    (a, b), (c, d) = one, other
    product = D * a * b * c * d
    x = (a * d + b * c) * pow(1 + product, -1, P)
    y = (b * d + a * c) * pow(1 - product, -1, P)
    return (x % P, y % P)


def times(count, point):
    result = (0, 1)
    for bit in bin(count)[2:]:
        result = add(result, result)
        if bit == "1":
            result = add(result, point)
    return result


BASE = recovered((4 * pow(5, -1, P) % P).to_bytes(32, "little"))


def is_signed(key, signature, text):
    """Tells whether the holder of the key signed the text (Ed25519)."""
    if len(signature) != 64:
        return False
    head, scalar = signature[:32], int.from_bytes(signature[32:], "little")
    digest = hashlib.sha512(head + key + text).digest()
    challenge = int.from_bytes(digest, "little") % ORDER
    if scalar >= ORDER:
        return False
    return times(scalar, BASE) == add(recovered(head), times(challenge, recovered(key)))


def canonical(body):
    """Returns the canonical JSON (RFC 8785) of a flat object of strings, whole numbers and null."""
    return json.dumps(
        body, sort_keys=True, separators=(",", ":"), ensure_ascii=False
    ).encode()


def is_genuine(raw, header):
    """Checks the HMAC-SHA256 over the raw bytes, with the whole `whsec_…` string as key."""
    expected = "sha256=" + hmac.new(SECRET, raw, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), header.encode())


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if length > BODY_MAX_BYTES:
            return self.end(413)
        raw = self.rfile.read(length)
        if not is_genuine(raw, self.headers.get("X-Service-Signature", "")):
            return self.end(400)
        receipt = json.loads(raw)
        signature = base64.b64decode(receipt["signature"])
        text = canonical(receipt["body"])
        if not any(is_signed(key, signature, text) for key in read_keys()):
            return self.end(400)
        body = receipt["body"]
        with lock:
            if body["paymentId"] not in handled:
                handled.add(body["paymentId"])
                usdc = int(body["amountUsdcRaw"]) / 1e6
                print(f"payment {body['paymentId']}: {usdc} USDC", flush=True)
        self.end(204)

    def end(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", PORT), Receiver)
print(f"receiving at http://127.0.0.1:{server.server_port}/hook", flush=True)
server.serve_forever()
