import { Type as t } from '@sinclair/typebox'
import { CREDENTIAL_TYPES, NAME_MAX_LENGTH } from '../../../shared/vault/credential.ts'
import {
  currentTotp,
  deleteCredential,
  listCredentials,
  readCredential,
  storeCredential,
} from '../../vault/vault.ts'
import { ProtectionFields } from '../../vault/vaultBounds.ts'
import { ItemSchema, NameParams, OpenSchema, StoredSchema } from '../../vault/vaultDocs.ts'
import { moreText, PageInput } from './mailTools.ts'
import { defineTool, READS, STRICT, type Tool } from './tool.ts'

export const Name = t.String({
  minLength: 1,
  maxLength: NameParams.properties.name.maxLength!,
  error: `be 1 to ${NAME_MAX_LENGTH} characters without control characters`,
  description: 'The name of the credential.',
})
const Named = t.Object({ name: Name }, STRICT)
const Fields = (description: string) => t.Object({}, { additionalProperties: true, description })

export const fixes = {
  not_found: 'Copy name exactly from vault.list.',
  expired: 'Ask for a new credential, and store it with vault.store under the same name.',
  forbidden:
    'A credential with reveal owner shows its secret to no key: use it with vault.use or vault.sign.',
} as const

const list = defineTool({
  name: 'vault.list',
  title: 'List credentials',
  description:
    'Lists the credentials of this vault without their secrets, newest first: name, type, metadata (such as a user name), the bounds of vault.use (allowedHosts, allowedMethods, allowedPaths, placement), expiresAt, lastUsedAt. Use it to find the name for vault.use and vault.get. expiringWithin shows only credentials that have expired or expire within that time. Answers credentials, count, and nextPageToken if there are more. Example: {"limit":20}',
  scope: 'vault:read',
  input: t.Object(
    {
      ...PageInput,
      expiringWithin: t.Optional(
        t.String({ maxLength: 16, description: 'A whole number and s, m, h, d or w, such as 7d.' }),
      ),
    },
    STRICT,
  ),
  output: t.Object({
    credentials: t.Array(ItemSchema),
    count: t.Integer(),
    nextPageToken: t.Optional(t.String()),
  }),
  hints: READS,
  async run({ services, caller }, { limit = 50, ...query }) {
    const page = await listCredentials(services, caller, { ...query, limit: String(limit) })
    const lines = page.credentials.map(
      ({ name, type, expiresAt }) =>
        `${JSON.stringify(name)} (${type}${expiresAt === null ? '' : `, expires ${expiresAt}`})`,
    )
    return {
      data: page,
      text: [`${page.count} credentials.${moreText(page)}`, ...lines].join('\n'),
    }
  },
})

const get = defineTool({
  name: 'vault.get',
  title: 'Read a credential',
  description:
    'Reads one credential with its secret in data. Prefer vault.use, which sends a request without showing the secret. Keep the secret out of mail, files and chat. It holds no one-time code: vault.totp answers it if hasTOTP is true. The audit log records every read. Example: {"name":"github"}',
  scope: 'vault:read',
  input: Named,
  output: OpenSchema,
  hints: READS,
  fixes,
  async run({ services, caller }, { name }) {
    const credential = await readCredential(services, caller, name)
    const { type, data } = credential
    return { data: credential, text: `${type} ${JSON.stringify(name)}: ${JSON.stringify(data)}` }
  },
})

const totp = defineTool({
  name: 'vault.totp',
  title: 'One-time code',
  description:
    'Answers the current one-time code of a credential and its validity in seconds (remaining). Use it when a login asks for a code. If only a few seconds remain, wait and call again. Example: {"name":"github"}',
  scope: 'vault:read',
  input: Named,
  output: t.Object({
    code: t.String(),
    remaining: t.Integer({ description: 'Seconds.' }),
    backupCodesRemaining: t.Integer(),
  }),
  // The one-time code changes every 30 seconds (RFC 6238 §5.2). Therefore a repeated call gets another result.
  hints: { ...READS, idempotentHint: false },
  fixes,
  async run({ services, caller }, { name }) {
    const current = await currentTotp(services, caller, name)
    return {
      data: current,
      text: `${current.code}, valid for ${current.remaining} more seconds.`,
    }
  },
})

const store = defineTool({
  name: 'vault.store',
  title: 'Store a credential',
  description:
    'Stores an encrypted credential under a name. It replaces a credential of that name with a new version; no field of the old version is kept in it. Use vault.list first unless you mean to replace. Put secrets into data; metadata is not encrypted, and lists show it. Put a TOTP secret into data.totp, or into data.secret of the type TOTP. allowedHosts, allowedMethods, allowedPaths and placement say how vault.use may use it; only the owner widens them later. Answers the credential without its secret. Example: {"name":"github","type":"LOGIN","data":{"password":"correct horse"},"metadata":{"username":"ada"}}',
  scope: 'vault:write',
  input: t.Object(
    {
      name: Name,
      type: t.Union(CREDENTIAL_TYPES.map((type) => t.Literal(type))),
      data: Fields('The secret fields, at least one.'),
      metadata: t.Optional(Fields('Fields that are not secret.')),
      expiresAt: t.Optional(
        t.String({ maxLength: 64, description: 'ISO 8601 time with its zone, or a date.' }),
      ),
      ...ProtectionFields,
    },
    STRICT,
  ),
  output: StoredSchema,
  hints: {
    readOnlyHint: false,
    destructiveHint: true,
    idempotentHint: false,
    openWorldHint: false,
  },
  async run({ services, caller }, { name, ...content }) {
    const stored = await storeCredential(services, caller, name, content)
    return { data: stored, text: `Stored ${JSON.stringify(name)} as version ${stored.version}.` }
  },
})

const remove = defineTool({
  name: 'vault.delete',
  title: 'Delete a credential',
  description:
    'Deletes a credential with all its versions. This cannot be undone: do it only when you are asked to. Example: {"name":"github"}',
  scope: 'vault:write',
  input: Named,
  output: t.Object({ name: t.String(), deleted: t.Literal(true) }),
  hints: {
    readOnlyHint: false,
    destructiveHint: true,
    idempotentHint: true,
    openWorldHint: false,
  },
  fixes,
  async run({ services, caller }, { name }) {
    await deleteCredential(services, caller, name)
    return { data: { name, deleted: true }, text: `Deleted ${JSON.stringify(name)}.` }
  },
})

/** Lists the MCP tools that read and store credentials. */
export const vaultTools: readonly Tool[] = [list, get, totp, store, remove]
