/** Lists the functions that read OAuth requests, and the metadata documents of OAuth clients. */
import {
  freshSeconds,
  isDocumentUrl,
  readClientDocument,
} from '../../../shared/oauth/clientDocument.ts'
import { ClientMetadataError, readClientMetadata } from '../../../shared/oauth/clientMetadata.ts'
import { offeredScopes, readScopes } from '../../../shared/oauth/oauthScopes.ts'
import { fitsChallenge, isChallenge, isToken } from '../../../shared/oauth/oauthTokens.ts'
import { isRegistered, redirectFault, redirectHost } from '../../../shared/oauth/redirectUri.ts'
import { isMcpResource } from '../../../shared/oauth/resource.ts'
import { HEADER, JSON_TEXT, TEXT, URL_TEXT } from '../inputs/grammars.ts'
import type { Reader } from './reader.ts'

/**
 * Sets the maximum length of one HTTP header field in these tests. Bun's limit for all header fields together is lower.
 */
const FIELD_MAX = 64 * 1024
const DOCUMENT = 'https://app.example/client.json'

const refusable = (read: () => unknown): unknown => {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ClientMetadataError)) throw error
    return null
  }
}

const document = (text: string) =>
  JSON.stringify({
    client_id: DOCUMENT,
    client_name: text,
    redirect_uris: ['https://app.example/callback', `https://app.example/${text}`],
    grant_types: ['authorization_code', text],
  })

export const OAUTH_READERS: readonly Reader[] = [
  ...Object.entries({
    'clientDocument.ts isDocumentUrl': (text: string) => isDocumentUrl(`https://a.b/${text}`),
    'clientDocument.ts isDocumentUrl: any': isDocumentUrl,
    'redirectUri.ts redirectFault': (text: string) => redirectFault(`http://127.0.0.1:1/${text}`),
    'redirectUri.ts isRegistered': (text: string) =>
      isRegistered(`http://127.0.0.1:1/${text}`, [`http://127.0.0.1:2/${text}`]),
    'redirectUri.ts redirectHost': (text: string) =>
      redirectHost(`https://a.b/${encodeURIComponent(text.toWellFormed())}`),
    'resource.ts isMcpResource': (text: string) => isMcpResource(text, 'https://a.b'),
  }).map(([name, read]) => ({ name: `oauth/${name}`, max: FIELD_MAX, grammar: URL_TEXT, read })),
  ...Object.entries({
    'clientDocument.ts freshSeconds': freshSeconds,
    'oauthScopes.ts readScopes': (text: string) => readScopes(text, offeredScopes([])),
    'oauthTokens.ts isToken': (text: string) => isToken(text, 'access'),
    'oauthTokens.ts isChallenge': isChallenge,
    'oauthTokens.ts fitsChallenge': (text: string) => fitsChallenge(text, text),
  }).map(([name, read]) => ({ name: `oauth/${name}`, max: FIELD_MAX, grammar: HEADER, read })),
  {
    name: 'oauth/clientDocument.ts readClientDocument',
    max: FIELD_MAX,
    grammar: JSON_TEXT,
    read: (text) => refusable(() => readClientDocument(DOCUMENT, text)),
  },
  {
    name: 'oauth/clientMetadata.ts readClientMetadata',
    max: FIELD_MAX,
    grammar: TEXT,
    read: (text) => refusable(() => readClientMetadata(JSON.parse(document(text)))),
  },
]
