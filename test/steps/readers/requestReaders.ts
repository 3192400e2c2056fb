/** Lists functions that read incoming requests, SMTP commands, or the responses of a chain node. */
import { type TSchema, Type as t } from '@sinclair/typebox'
import { readForm, readJson, refuseUnstorable } from '../../../api/http/input/body.ts'
import { readIdempotencyKey, requestHash } from '../../../api/http/input/idempotencyKey.ts'
import { refuseUnknownFields } from '../../../api/http/input/unknownFields.ts'
import { findTool } from '../../../api/mcp/naming.ts'
import { cut } from '../../../api/mcp/tools/mailText.ts'
import { fence } from '../../../api/mcp/tools/untrusted.ts'
import { normalPath, PathError } from '../../../api/sell/sellPath.ts'
import { takeQuotedPaths } from '../../../api/smtp/quotedPaths.ts'
import { keyOfAnswer } from '../../../workers/till/chain/ballot.ts'
import { ADDRESSES, HEADER, JSON_TEXT, TEXT, URL_TEXT } from '../inputs/grammars.ts'
import type { Reader } from './reader.ts'

const BODY_MAX = 2 * 1024 * 1024
const limit = { maxBytes: BODY_MAX }
const request = (type: string, body: string) =>
  new Request('http://a.b/', { method: 'POST', body, headers: { 'content-type': type } })

/** Reads an SMTP MAIL command in the form that the SMTP library passes. */
function readPath(command: string): unknown {
  const session = {}
  const connection = { session, _parseAddressCommand: () => false }
  const server = { connections: new Set([connection]) }
  takeQuotedPaths(server as never, session as never)
  const parse = connection._parseAddressCommand as (name: string, command: string) => unknown
  return parse('MAIL FROM', command)
}

/** Reads a URL path that a buyer requests from the proxy of a seller. Returns null if the path is refused. */
function sellPath(text: string): unknown {
  try {
    return normalPath(`/${text}`)
  } catch (error) {
    if (!(error instanceof PathError)) throw error
    return null
  }
}

const BODY_SCHEMA = t.Object({
  a: t.Array(t.Object({ b: t.String() }), { maxItems: 1_000_000 }),
  open: t.Record(t.String(), t.String()),
})

/** Searches a request body for unknown fields. Returns the error message if there is an unknown field. */
function unknownFieldOf(body: unknown, schema: TSchema): string | null {
  try {
    refuseUnknownFields(body, schema)
    return null
  } catch (error) {
    return (error as Error).message
  }
}

/** Reads request bodies with a long field name, with many fields, and with many items. */
const unknownFields = (text: string) => [
  unknownFieldOf({ [text]: text }, BODY_SCHEMA),
  unknownFieldOf(
    { open: Object.fromEntries([...text].map((one, n) => [one + n, one])) },
    BODY_SCHEMA,
  ),
  unknownFieldOf({ a: [...text].map((one) => ({ b: one })) }, BODY_SCHEMA),
]

/** Reads the responses of a chain node. */
const nodeAnswers = (text: string) => [
  keyOfAnswer('eth_call', { ok: true, result: text }),
  keyOfAnswer('eth_call', { ok: false, code: -32000, message: text, data: text }),
  keyOfAnswer('eth_getBlockByNumber', { ok: true, result: { number: text, hash: text } }),
  keyOfAnswer('eth_getLogs', { ok: true, result: [{ topics: [text], data: text }] }),
  keyOfAnswer('eth_getTransactionReceipt', { ok: true, result: { logs: [{ data: text }] } }),
]

export const REQUEST_READERS: readonly Reader[] = [
  { name: 'api/sell/sellPath.ts normalPath', max: 64 * 1024, grammar: URL_TEXT, read: sellPath },
  {
    name: 'workers/till/chain/ballot.ts keyOfAnswer',
    max: BODY_MAX,
    grammar: HEADER,
    read: nodeAnswers,
  },
  {
    name: 'api/http/input/body.ts readJson',
    max: BODY_MAX,
    grammar: JSON_TEXT,
    read: (text) => readJson(request('application/json', text), limit),
  },
  {
    name: 'api/http/input/body.ts readJson: strings',
    max: BODY_MAX,
    grammar: JSON_TEXT,
    read: (text) =>
      readJson(request('application/json', JSON.stringify({ a: [text, '\0'] })), limit),
  },
  {
    name: 'api/http/input/unknownFields.ts refuseUnknownFields',
    max: BODY_MAX,
    grammar: JSON_TEXT,
    read: unknownFields,
  },
  {
    name: 'api/http/input/body.ts refuseUnstorable',
    max: BODY_MAX,
    grammar: JSON_TEXT,
    read: (text) => refuseUnstorable({ [text]: text.split('a'), a: { [text]: [text] } }, ''),
  },
  {
    name: 'api/http/input/body.ts readForm',
    max: BODY_MAX,
    grammar: URL_TEXT,
    read: (text) => readForm(request('application/x-www-form-urlencoded', text), limit),
  },
  {
    name: 'api/http/input/idempotencyKey.ts readIdempotencyKey',
    max: 16 * 1024,
    grammar: HEADER,
    read: (text) => readIdempotencyKey(text),
  },
  {
    name: 'api/http/input/idempotencyKey.ts requestHash',
    max: BODY_MAX,
    grammar: JSON_TEXT,
    read: (text) => requestHash({ a: text.split('a'), [text]: text }),
  },
  {
    name: 'api/mcp/tools/untrusted.ts fence',
    max: BODY_MAX,
    grammar: TEXT,
    read: (text) => fence(text),
  },
  {
    name: 'api/mcp/tools/mailText.ts cut',
    max: BODY_MAX,
    grammar: TEXT,
    read: (text) => cut(text, 20_000),
  },
  {
    name: 'api/mcp/naming.ts findTool',
    max: BODY_MAX,
    grammar: TEXT,
    read: (text) => findTool(text),
  },
  {
    name: 'api/smtp/quotedPaths.ts takeQuotedPaths',
    max: 64 * 1024,
    grammar: ADDRESSES,
    read: (text) => readPath(`MAIL FROM:<"${text}`),
  },
]
