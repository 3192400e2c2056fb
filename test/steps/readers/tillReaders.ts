/** Lists functions that read untrusted payments, network addresses and short texts. */
import { parseAuthorization } from '../../../shared/apiKey.ts'
import { canonicalJson } from '../../../shared/canonicalJson.ts'
import { decodeCursor } from '../../../shared/cursor.ts'
import { networkSubject, networksOf } from '../../../shared/http/networkSubject.ts'
import { normalEncoding, normalUrl } from '../../../shared/http/normalUrl.ts'
import { outboundUrlFault } from '../../../shared/http/outboundUrl.ts'
import { isPublicAddress, judgeHost } from '../../../shared/http/publicAddress.ts'
import { isDay, parseDuration, parseIsoTime } from '../../../shared/isoTime.ts'
import { isStorable, storableLine } from '../../../shared/storable.ts'
import { challengePayees, challengeVersions } from '../../../shared/till/anyChallenge.ts'
import { classifySignature, normaliseSignature } from '../../../shared/till/authorization.ts'
import { jsonFault } from '../../../shared/till/bazaar/jsonBounds.ts'
import { schemaFault, valueFault } from '../../../shared/till/bazaar/jsonSchema.ts'
import { readOpenApi } from '../../../shared/till/bazaar/openApi.ts'
import { readSchema } from '../../../shared/till/bazaar/openApiSchema.ts'
import { readInput, readOutput } from '../../../shared/till/bazaar/readMetadata.ts'
import { readBazaar, readSeen } from '../../../shared/till/bazaar/seen.ts'
import {
  distinctTags,
  iconUrlFault,
  isRouteTemplate,
  isWord,
} from '../../../shared/till/bazaar/words.ts'
import { cutDescription } from '../../../shared/till/description.ts'
import { jwsSigningInput } from '../../../shared/till/jws.ts'
import { verifyReceipt } from '../../../shared/till/receipt.ts'
import { isMcpTool, parsePaidResource, parseResourceUrl } from '../../../shared/till/resourceUrl.ts'
import { parseUsdc, usdcNetwork, usdcNetworkOf } from '../../../shared/till/usdc.ts'
import { decodePaymentHeader, parsePaymentPayload } from '../../../shared/till/x402.ts'
import { networkNameOf } from '../../../shared/till/x402v2.ts'
import {
  ADDRESSES,
  ENCODED,
  HEADER,
  JSON_TEXT,
  SCHEMA_TEXT,
  TEXT,
  URL_TEXT,
} from '../inputs/grammars.ts'
import type { Reader } from './reader.ts'
import { all, json, pieces } from './readerOf.ts'

const BODY_MAX = 2 * 1024 * 1024
const HEADER_MAX = 16 * 1024

export const TILL_READERS: readonly Reader[] = [
  ...all('http/networkSubject.ts', 64, ADDRESSES, { networkSubject, networksOf }),
  ...all('http/normalUrl.ts', BODY_MAX, URL_TEXT, {
    normalEncoding,
    normalUrl: (text) => normalUrl(`https://a.b/${text}`),
  }),
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
  ...all('till/bazaar/jsonBounds.ts', BODY_MAX, SCHEMA_TEXT, {
    isStorable: (text) => isStorable(json(text)),
    storableLine: (text) => storableLine(text, 1_000),
    jsonFault: (text) => jsonFault(json(text), text.length),
  }),
  ...all('till/bazaar/jsonSchema.ts', HEADER_MAX, SCHEMA_TEXT, {
    schemaFault: (text) => schemaFault(json(text)),
    valueFault: (text) => valueFault(json(text), json(text)),
    'valueFault: enum': (text) => valueFault({ items: { enum: pieces(text) } }, pieces(text)),
  }),
  ...all('till/bazaar/openApi.ts', BODY_MAX, SCHEMA_TEXT, {
    readOpenApi: (text) => readOpenApi(text, 'https://a.b/a'),
    'readOpenApi: many paths': (text) =>
      readOpenApi(
        JSON.stringify({
          openapi: '3.0.0',
          paths: Object.fromEntries(pieces(text).map((path) => [`/${path}`, {}])),
        }),
        'https://a.b/a/b',
      ),
  }),
  ...all('till/bazaar/openApiSchema.ts', BODY_MAX, SCHEMA_TEXT, {
    readSchema: (text) => readSchema(json(text) as Record<string, unknown>, json(text)),
  }),
  ...all('till/bazaar/readMetadata.ts', BODY_MAX, SCHEMA_TEXT, {
    readInput: (text) => readInput(json(text), false),
    'readInput: tool': (text) => readInput({ inputSchema: json(text) }, true),
    readOutput: (text) => readOutput({ schema: json(text) }),
  }),
  ...all('till/bazaar/seen.ts', HEADER_MAX, SCHEMA_TEXT, {
    readBazaar: (text) =>
      readBazaar({ info: { input: { type: 'http' } }, schema: { properties: json(text) } }),
    readSeen: (text) => readSeen(Buffer.from(text).toString('base64')),
  }),
  ...all('till/bazaar/words.ts', BODY_MAX, URL_TEXT, {
    isWord,
    distinctTags: (text) => distinctTags(pieces(text)),
    iconUrlFault: (text) => iconUrlFault(`https://${text}`),
    isRouteTemplate: (text) => isRouteTemplate(`/${text}`),
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
  ...all('isoTime.ts', BODY_MAX, URL_TEXT, { parseIsoTime, parseDuration, isDay }),
  ...all('canonicalJson.ts', BODY_MAX, JSON_TEXT, {
    canonicalJson: (text) => canonicalJson(json(text)),
  }),
]
