import { Type as t } from '@sinclair/typebox'
import { isoSeconds } from '../../shared/isoTime.ts'
import { REVEALS } from '../../shared/vault/bounds/allowedHosts.ts'
import { effectiveBounds } from '../../shared/vault/bounds/bounds.ts'
import {
  CREDENTIAL_TYPES,
  NAME_MAX_LENGTH,
  shownData,
  TOTP_MARKER,
} from '../../shared/vault/credential.ts'
import type { OpenCredential } from '../../sql/vault/credentialReads.ts'
import type { StoredCredential } from '../../sql/vault/credentials.ts'
import type { VersionSummary } from '../../sql/vault/credentialVersions.ts'
import { Time } from '../http/operation.ts'

const NullableTime = t.Union([Time, t.Null()])
const Fields = t.Object({}, { additionalProperties: true })
const Type = t.String({ enum: [...CREDENTIAL_TYPES] })

const shared = {
  credentialId: t.String({ examples: ['cred_0a1b2c3d4e5f60718293a4b5'] }),
  type: Type,
  name: t.String(),
  version: t.Integer({ description: 'The versions are numbered from 1.' }),
  metadata: Fields,
  expiresAt: NullableTime,
  allowedHosts: t.Array(t.String(), {
    description: 'A use may reach these hosts. The default is the host of `metadata.uri`.',
  }),
  allowedMethods: t.Array(t.String(), {
    description: 'A use may have these methods. All methods are allowed by default.',
  }),
  allowedPaths: t.Array(t.String(), {
    description: 'A use may have paths with these prefixes. All paths are allowed by default.',
  }),
  placement: t.Array(t.String(), {
    description: 'A use may put the secret at these places. The default depends on `type`.',
  }),
  reveal: t.String({
    enum: [...REVEALS],
    description:
      'With `agent`, a key with the scope vault:read reads the secret. With `owner`, no key reads the secret.',
  }),
}
const CreatedAt = t.String({ format: 'date-time', examples: ['2026-01-05T09:30:00Z'] })
const Data = t.Object(
  {},
  {
    additionalProperties: true,
    description: `This object holds the secret fields. A TOTP secret reads ${TOTP_MARKER}.`,
  },
)
const times = { lastUsedAt: NullableTime, lastRotatedAt: NullableTime }

const TimeIfFull = t.Optional(
  t.Union([...NullableTime.anyOf], {
    description: 'The field appears only in the answer to PUT, with ANSWERS=full.',
  }),
)

/** Describes the response to a caller that stores or restores a credential. */
export const StoredSchema = t.Object({
  ...shared,
  lastUsedAt: TimeIfFull,
  lastRotatedAt: TimeIfFull,
  createdAt: CreatedAt,
})
export const ItemSchema = t.Object({ ...shared, ...times, createdAt: CreatedAt })
export const OpenSchema = t.Object({
  ...shared,
  data: Data,
  hasTOTP: t.Boolean(),
  ...times,
  createdAt: CreatedAt,
})
export const VersionSchema = t.Object({
  version: shared.version,
  type: Type,
  metadata: Fields,
  expiresAt: NullableTime,
  createdAt: CreatedAt,
  current: t.Boolean({ description: 'True means that this version is the current one.' }),
})
export const OpenVersionSchema = t.Object({
  ...shared,
  data: Data,
  hasTOTP: t.Boolean(),
  createdAt: CreatedAt,
  current: t.Boolean(),
})

/**
 * Describes the name of a credential in the path, which Elysia has decoded. The schema limits only the length, in
 * UTF-16 code units. The operations of the vault check the rest of the name themselves, because MCP tools also call
 * them.
 */
export const NameParams = t.Object({
  name: t.String({
    maxLength: 2 * NAME_MAX_LENGTH,
    error: `be 1 to ${NAME_MAX_LENGTH} characters without control characters`,
    description: `The name has 1 to ${NAME_MAX_LENGTH} characters of any script. Percent-encode the name; a slash becomes %2F.`,
  }),
})

/** Describes the query of the operations on one credential. */
export const NameQuery = t.Object({
  name: t.Optional(
    t.String({
      maxLength: 300,
      description:
        'This name replaces the name in the path. The names "." and ".." need this field, because clients remove such segments from a path.',
    }),
  ),
})

/** Returns the name of the credential that an HTTP request concerns. */
export const nameOf = ({
  params,
  query,
}: {
  params: { name: string }
  query: { name?: string | undefined }
}): string => query.name ?? params.name

export const EXAMPLE_STORED = {
  credentialId: 'cred_0a1b2c3d4e5f60718293a4b5',
  type: 'LOGIN',
  name: 'github',
  version: 2,
  metadata: { uri: 'https://github.com', username: 'ada' },
  expiresAt: null,
  ...effectiveBounds({
    ...{ type: 'LOGIN', metadata: {}, allowedHosts: ['github.com'], allowedMethods: null },
    ...{ allowedPaths: null, placement: ['basic', 'password@json:/password'] },
  }),
  reveal: 'agent',
  createdAt: '2026-01-05T09:30:00Z',
}
export const EXAMPLE_ITEM = {
  ...EXAMPLE_STORED,
  lastUsedAt: '2026-01-06T10:00:00.000Z',
  lastRotatedAt: null,
}
export const EXAMPLE_OPEN = {
  ...EXAMPLE_ITEM,
  data: { password: 'correct horse', totp: TOTP_MARKER },
  hasTOTP: true,
}
const {
  credentialId: _id,
  name: _name,
  allowedHosts: _hosts,
  allowedMethods: _methods,
  allowedPaths: _paths,
  placement: _placement,
  reveal: _reveal,
  ...exampleVersion
} = EXAMPLE_STORED
export const EXAMPLE_VERSION = { ...exampleVersion, current: true }
export const EXAMPLE_OPEN_VERSION = {
  ...EXAMPLE_STORED,
  version: 1,
  data: { password: 'battery staple' },
  hasTOTP: false,
  current: false,
}

const iso = (at: Date | null): string | null => at?.toISOString() ?? null

function shownBounds(credential: StoredCredential) {
  const { allowedHosts, allowedMethods, allowedPaths, placement } = effectiveBounds(credential)
  return {
    allowedHosts: [...allowedHosts],
    allowedMethods: [...allowedMethods],
    allowedPaths: [...allowedPaths],
    placement: [...placement],
  }
}

/** Returns a stored credential without its data, as in the response to PUT. */
export const toStored = (credential: StoredCredential) => ({
  credentialId: credential.id,
  type: credential.type,
  name: credential.name,
  version: credential.version,
  metadata: credential.metadata,
  expiresAt: iso(credential.expiresAt),
  ...shownBounds(credential),
  reveal: credential.reveal,
  createdAt: isoSeconds(credential.createdAt),
})

/** Returns a credential in the form in which a list shows it. */
export const toItem = (credential: StoredCredential) => ({
  ...toStored(credential),
  lastUsedAt: iso(credential.lastUsedAt),
  lastRotatedAt: iso(credential.lastRotatedAt),
})

/** Returns a credential with its secret, but without TOTP secrets. */
export const toOpen = (credential: OpenCredential) => ({
  ...toItem(credential),
  data: shownData(credential.type, credential.data),
  hasTOTP: credential.hasTotp,
})

/** Returns one version of a credential with its secret, but without TOTP secrets. */
export const toOpenVersion = (credential: OpenCredential) => ({
  ...toStored(credential),
  data: shownData(credential.type, credential.data),
  hasTOTP: credential.hasTotp,
  current: credential.current,
})

export const toVersion = (version: VersionSummary) => ({
  version: version.version,
  type: version.type,
  metadata: version.metadata,
  expiresAt: iso(version.expiresAt),
  createdAt: isoSeconds(version.createdAt),
  current: version.current,
})
