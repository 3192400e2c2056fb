/** Lists the functions of the vault that read untrusted texts. */

import { isClearPath } from '../../../shared/http/clearPath.ts'
import { headerKey } from '../../../shared/http/headerName.ts'
import * as hosts from '../../../shared/vault/bounds/allowedHosts.ts'
import * as paths from '../../../shared/vault/bounds/allowedPaths.ts'
import {
  areWithin,
  checkBounds,
  commonBounds,
  effectiveBounds,
} from '../../../shared/vault/bounds/bounds.ts'
import * as credential from '../../../shared/vault/credential.ts'
import { createRunDecoder, narrowed, unescapedViews } from '../../../shared/vault/decodedViews.ts'
import { fillBody, fillPairs } from '../../../shared/vault/fillBody.ts'
import { Masker } from '../../../shared/vault/maskSecrets.ts'
import { NeedleSearch } from '../../../shared/vault/needleSearch.ts'
import { createFill, unsentSecrets } from '../../../shared/vault/placeholders.ts'
import * as placement from '../../../shared/vault/placement.ts'
import { hmacSha256, readBytes, readEd25519Key } from '../../../shared/vault/signText.ts'
import { signAwsRequest } from '../../../shared/vault/sigV4.ts'
import { parseTotpSecret } from '../../../shared/vault/totp.ts'
import { checkUseRequest, fillRequest } from '../../../shared/vault/useRequest.ts'
import { ENCODED, HEADER, JSON_TEXT, URL_TEXT } from '../inputs/grammars.ts'
import type { Reader } from './reader.ts'
import { all, json, pieces, reader } from './readerOf.ts'

const BODY_MAX = 2 * 1024 * 1024
const USE_BODY_MAX = 256 * 1024
const HEADER_MAX = 16 * 1024
const URL_MAX = 4_096
/**
 * Sets the maximum number of bytes in the response to a request that uses a secret. `workers/vault/maskerMain.ts` masks
 * secrets in such responses in a child process with a time limit.
 */
const ANSWER_MAX = 1024 * 1024

const half = (text: string): [string, string] => [
  text.slice(0, text.length / 2),
  text.slice(text.length / 2),
]

const UNBOUND = { allowedHosts: null, allowedMethods: null, allowedPaths: null, placement: null }
const used = (data: Record<string, unknown>) => ({
  ...UNBOUND,
  type: 'API_KEY',
  data,
  metadata: { uri: 'https://a.b' },
  placement: ['body', 'header:x', 'json:/a'],
})
const fill = () =>
  createFill(used({ a: 'secret' }), { placement: ['body'], nowMs: 0, sent: new Set() })
const boundsOf = (list: string[]) => ({
  allowedHosts: list.slice(0, hosts.ALLOWED_HOSTS_MAX),
  allowedMethods: ['GET'],
  allowedPaths: list.slice(0, paths.ALLOWED_PATHS_MAX),
  placement: list.slice(0, placement.PLACEMENT_MAX),
})
const aws = { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: null }

const LOOPBACK = { allowLoopback: true }
const checkUrl = (url: string) =>
  checkUseRequest({ method: 'GET', url: url.slice(0, URL_MAX), headers: {}, body: null }, LOOPBACK)

export const VAULT_READERS: readonly Reader[] = [
  reader(
    'vault/maskSecrets.ts Masker: answer',
    ANSWER_MAX,
    ENCODED,
    (text) => new Masker(['secret', 'sessionkey', 'a\nbcdefghij']).text(text),
    3_000_000,
  ),
  reader(
    'vault/maskSecrets.ts Masker: secrets',
    USE_BODY_MAX,
    ENCODED,
    (text) => {
      const [secret, answer] = half(text)
      return new Masker([secret, ...pieces(secret, 40)]).text(answer)
    },
    3_000_000,
  ),
  reader('vault/needleSearch.ts NeedleSearch', ANSWER_MAX, ENCODED, (text) => {
    const [needle, rest] = half(Buffer.from(text).toString('latin1'))
    return new NeedleSearch([needle, `${needle}#`, ...pieces(needle)]).find(rest)
  }),
  ...all('vault/decodedViews.ts', ANSWER_MAX, ENCODED, {
    narrowed,
    unescapedViews: (text) => [...unescapedViews(text)],
    createRunDecoder: (text) => {
      const decoder = createRunDecoder(3)
      for (const _ of decoder.decode(text));
      decoder.textOf(text)
    },
  }),
  ...all('vault/fillBody.ts', USE_BODY_MAX, JSON_TEXT, {
    'fillBody: JSON': (text) => fillBody(text, { 'content-type': 'application/json' }, fill()),
    'fillBody: JSON strings': (text) =>
      fillBody(JSON.stringify({ b: pieces(text) }), { 'content-type': 'application/json' }, fill()),
    'fillBody: form': (text) =>
      fillBody(text, { 'content-type': 'application/x-www-form-urlencoded' }, fill()),
    'fillBody: text': (text) => fillBody(text, { 'content-type': text.slice(0, 8_192) }, fill()),
    fillPairs: (text) => fillPairs('form', text, fill()),
  }),
  ...all('vault/placeholders.ts', USE_BODY_MAX, JSON_TEXT, {
    createFill: (text) =>
      fill()(
        text,
        () => ['body'],
        (value) => value,
      ),
    unsentSecrets: (text) => unsentSecrets(used({ a: text, list: pieces(text) }), 0),
  }),
  ...all('vault/useRequest.ts', URL_MAX, URL_TEXT, {
    'checkUseRequest: URL': (text) => checkUrl(`https://a.b/${text}`),
    'checkUseRequest: host': (text) => checkUrl(`https://${text}`),
    'checkUseRequest: loopback': (text) => checkUrl(`http://127.${text}`),
    'fillRequest: URL': (text) =>
      fillRequest(
        { method: 'GET', url: `https://a.b/${text}`, headers: {}, body: null },
        used({ a: 'secret' }),
        0,
      ),
  }),
  reader('http/headerName.ts headerKey', HEADER_MAX, HEADER, headerKey),
  reader('vault/useRequest.ts checkUseRequest: headers', HEADER_MAX, HEADER, (text) =>
    checkUseRequest(
      {
        method: 'POST',
        url: 'https://a.b/',
        headers: Object.fromEntries(
          text
            .split(':')
            .slice(0, 40)
            .map((value, n) => [`x${n}`, value]),
        ),
        body: text,
      },
      LOOPBACK,
    ),
  ),
  reader('vault/useRequest.ts fillRequest: headers', HEADER_MAX, JSON_TEXT, (text) =>
    fillRequest(
      {
        method: 'POST',
        url: 'https://a.b/',
        headers: { x: text, authorization: `Basic ${text}`, 'content-type': text },
        body: null,
      },
      used({ a: 'secret' }),
      0,
    ),
  ),
  ...all('vault/bounds/allowedHosts.ts', BODY_MAX, URL_TEXT, {
    parseAllowedHost: hosts.parseAllowedHost,
    effectiveHosts: (text) =>
      hosts.effectiveHosts(null, { uri: text.slice(0, credential.METADATA_MAX_BYTES) }),
    meetHosts: (text) => hosts.meetHosts(`*.${text}`, text),
    isAllowedHost: (text) => hosts.isAllowedHost(pieces(text, text.length / 20), text),
  }),
  ...all('vault/bounds/allowedPaths.ts', BODY_MAX, URL_TEXT, {
    parseAllowedPath: (text) => paths.parseAllowedPath(`/${text}`),
    meetPaths: (text) => paths.meetPaths(`/${text}`, `/${text}/a`),
    isAllowedPath: (text) => paths.isAllowedPath(['/a', text.slice(0, 1_024)], text),
  }),
  reader('http/clearPath.ts isClearPath', BODY_MAX, URL_TEXT, (text) => isClearPath(`/${text}`)),
  ...all('vault/placement.ts', BODY_MAX, URL_TEXT, {
    parsePlacement: (text) => placement.parsePlacement(text),
    'parsePlacement: JSON': (text) => placement.parsePlacement(`json:/${text}`.slice(0, 205)),
    placeName: placement.placeName,
    meetPlacements: (text) => placement.meetPlacements(`a@${text}`, text),
    mayStand: (text) => placement.mayStand(pieces(text, text.length / 40), ['a', 'b'], [text]),
    defaultPlacement: (text) => placement.defaultPlacement(text),
  }),
  ...all('vault/bounds/bounds.ts', HEADER_MAX, URL_TEXT, {
    effectiveBounds: (text) => effectiveBounds({ ...used({}), metadata: { uri: text } }),
    areWithin: (text) => {
      const bounds = boundsOf(pieces(text, text.length / 40)) as never
      return areWithin(bounds, bounds)
    },
    commonBounds: (text) => {
      const bounds = boundsOf(pieces(text, text.length / 40)) as never
      return commonBounds([bounds, bounds])
    },
    checkBounds: (text) =>
      checkBounds(boundsOf(['a.b', '/a']) as never, { method: 'GET', url: `https://a.b/${text}` }),
  }),
  ...all('vault/credential.ts', BODY_MAX, JSON_TEXT, {
    checkName: credential.checkName,
    checkContent: (text) =>
      credential.checkContent({ type: 'CUSTOM', data: json(text), metadata: {} }),
    shownData: (text) => credential.shownData('CUSTOM', { a: text }),
    hasTotp: (text) => credential.hasTotp('TOTP', { secret: text }),
    totpKeyOf: (text) => credential.totpKeyOf('TOTP', { secret: text }),
    usedBackupCodes: (text) => credential.usedBackupCodes({ usedBackupCodes: pieces(text) }),
    unusedBackupCodes: (text) => credential.unusedBackupCodes({ backupCodes: pieces(text) }),
    popBackupCode: (text) =>
      credential.popBackupCode({ backupCodes: pieces(text), usedBackupCodes: pieces(text) }),
    withoutUsedCodes: (text) =>
      credential.withoutUsedCodes(
        { backupCodes: pieces(text) },
        { usedBackupCodes: pieces(text, 7) },
      ),
  }),
  reader('vault/totp.ts parseTotpSecret', URL_MAX, URL_TEXT, (text) =>
    [() => parseTotpSecret(`otpauth://totp/a?secret=${text}`), () => parseTotpSecret(text)].map(
      (read) => {
        try {
          return read()
        } catch {
          return null
        }
      },
    ),
  ),
  reader('vault/sigV4.ts signAwsRequest', USE_BODY_MAX, URL_TEXT, (text) =>
    signAwsRequest(
      {
        method: 'GET',
        url: `https://a.b/${text.slice(0, URL_MAX)}`,
        headers: { a: text.slice(0, HEADER_MAX) },
        body: text,
        region: 'a',
        service: 'b',
      },
      aws,
      new Date(0),
    ),
  ),
  ...all('vault/signText.ts', BODY_MAX, ENCODED, {
    'readBytes: utf8': (text) => readBytes('a', text, 'utf8'),
    'readBytes: base64': (text) => readBytes('a', text, 'base64'),
    'readBytes: hex': (text) => readBytes('a', text, 'hex'),
    readEd25519Key: (text) => readEd25519Key(text),
    hmacSha256: (text) => hmacSha256(Buffer.from('a'), Buffer.from(text)),
  }),
]
