/** Readers of payments, of addresses on the net, and of small texts. */
import { parseAuthorization } from '../../../shared/apiKey.ts'
import { canonicalJson } from '../../../shared/canonicalJson.ts'
import { decodeCursor } from '../../../shared/cursor.ts'
import { networkSubject, networksOf } from '../../../shared/http/networkSubject.ts'
import { outboundUrlFault } from '../../../shared/http/outboundUrl.ts'
import { isPublicAddress, judgeHost } from '../../../shared/http/publicAddress.ts'
import { parseDuration, parseIsoTime } from '../../../shared/isoTime.ts'
import { challengePayees, challengeVersions } from '../../../shared/till/anyChallenge.ts'
import { classifySignature, normaliseSignature } from '../../../shared/till/authorization.ts'
import { cutDescription } from '../../../shared/till/description.ts'
import { jwsSigningInput } from '../../../shared/till/jws.ts'
import { verifyReceipt } from '../../../shared/till/receipt.ts'
import { isMcpTool, parsePaidResource, parseResourceUrl } from '../../../shared/till/resourceUrl.ts'
import { parseUsdc, usdcNetwork, usdcNetworkOf } from '../../../shared/till/usdc.ts'
import { decodePaymentHeader, parsePaymentPayload } from '../../../shared/till/x402.ts'
import { networkNameOf } from '../../../shared/till/x402v2.ts'
import { ADDRESSES, ENCODED, HEADER, JSON_TEXT, TEXT, URL_TEXT } from '../inputs/grammars.ts'
import type { Reader } from './reader.ts'
import { all, json, pieces } from './readerOf.ts'

const BODY_MAX = 2 * 1024 * 1024
const HEADER_MAX = 16 * 1024

export const TILL_READERS: readonly Reader[] = [
  ...all('http/networkSubject.ts', 64, ADDRESSES, { networkSubject, networksOf }),
  ...all('http/outboundUrl.ts', BODY_MAX, URL_TEXT, {
    outboundUrlFault: (text) => outboundUrlFault(`https://${text}`, false),
  }),
  ...all('http/publicAddress.ts', BODY_MAX, URL_TEXT, {
    isPublicAddress,
    judgeHost: (text) => judgeHost(new URL(`https://${text}`)),
  }),
  ...all('till/anyChallenge.ts', BODY_MAX, JSON_TEXT, {
    challengeVersions: (text) => challengeVersions(text, text),
    challengePayees: (text) => challengePayees(text, Buffer.from(text).toString('base64')),
    'challengePayees: many': (text) =>
      challengePayees(
        JSON.stringify({ accepts: pieces(text).map((payTo) => ({ payTo })) }),
        undefined,
      ),
  }),
  ...all('till/authorization.ts', 8_192, ENCODED, {
    normaliseSignature: (text) => normaliseSignature(`0x${Buffer.from(text).toString('hex')}`),
    classifySignature: (text) =>
      classifySignature(
        `0x${Buffer.from(text).toString('hex')}6492649264926492649264926492649264926492649264926492649264926492`,
      ),
  }),
  ...all('till/description.ts', BODY_MAX, TEXT, { cutDescription }),
  ...all('till/jws.ts', BODY_MAX, JSON_TEXT, {
    jwsSigningInput: (text) => jwsSigningInput(json(text) as object, 'k'),
  }),
  ...all('till/receipt.ts', BODY_MAX, JSON_TEXT, {
    verifyReceipt: (text) => verifyReceipt({ receipt: json(text), trustedKeys: [] }),
  }),
  ...all('till/resourceUrl.ts', BODY_MAX, URL_TEXT, {
    parseResourceUrl: (text) => parseResourceUrl(`https://${text}`),
    isMcpTool: (text) => isMcpTool(`mcp://tool/${text}`),
    parsePaidResource: (text) => parsePaidResource(`mcp://tool/${text}`),
  }),
  ...all('till/usdc.ts', BODY_MAX, URL_TEXT, { parseUsdc, usdcNetwork, usdcNetworkOf }),
  ...all('till/x402.ts', BODY_MAX, JSON_TEXT, {
    decodePaymentHeader: (text) => decodePaymentHeader(Buffer.from(text).toString('base64')),
    parsePaymentPayload: (text) => parsePaymentPayload(json(text)),
  }),
  ...all('till/x402v2.ts', BODY_MAX, URL_TEXT, { networkNameOf }),
  ...all('apiKey.ts', HEADER_MAX, HEADER, {
    parseAuthorization: (text) => parseAuthorization(`Bearer ${text}`),
  }),
  ...all('cursor.ts', HEADER_MAX, URL_TEXT, { decodeCursor }),
  ...all('isoTime.ts', BODY_MAX, URL_TEXT, { parseIsoTime, parseDuration }),
  ...all('canonicalJson.ts', BODY_MAX, JSON_TEXT, {
    canonicalJson: (text) => canonicalJson(json(text)),
  }),
]
