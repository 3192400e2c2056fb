import { Type as t } from '@sinclair/typebox'
import { PROJECT_SCOPES } from '../../shared/scopes.ts'
import { SEND_POLICIES } from '../../sql/account/projects/sendPolicy.ts'
import { RangeQuery } from '../http/input/queryTime.ts'
import { OrderQuery, operation, PageQuery, PartOf, Time } from '../http/operation.ts'
import { Limits, RetentionInput, RetentionSchema } from './projectSettings.ts'

const NAME_MAX_LENGTH = 200
const Name = t.String({
  minLength: 1,
  maxLength: NAME_MAX_LENGTH,
  pattern: '^[^\\r\\n]*$',
  error: `be one line of 1 to ${NAME_MAX_LENGTH} characters`,
})
const EmailName = t.String({
  pattern: '^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$',
  error:
    'be 1 to 64 letters, digits, dots, hyphens or underscores, and begin and end with a letter or digit',
})
/**
 * Sets the maximum number of entries in a list of scopes. The maximum exceeds the number of existing scopes. Therefore
 * a list with all existing scopes and an unknown one gets the error that names the unknown scope, and not the error
 * about the length of the list.
 */
const SCOPES_MAX = 50
/**
 * Describes a scope of a project key by a pattern and not by a union. With a union in an array schema, Elysia would
 * split a string into letters.
 */
const ProjectScope = t.String({
  pattern: `^(?:${PROJECT_SCOPES.join('|')})$`,
  error: `be one of ${PROJECT_SCOPES.map((scope) => JSON.stringify(scope)).join(', ')}`,
  openapi: { enum: [...PROJECT_SCOPES] },
})
const ScopeList = t.Array(ProjectScope, {
  maxItems: SCOPES_MAX,
  description: 'A repeated entry counts once.',
})
const Address = t.String({
  pattern: '^0x[0-9a-fA-F]{40}$',
  error: 'be an EVM address (0x and 40 hexadecimal digits)',
})
const PayTo = t.Union([Address, t.Null()])
const Purpose = t.Union([t.Literal('SELLER'), t.Literal('BUYER')])

export const CreateBody = t.Object({
  purpose: t.Optional(Purpose),
  name: t.Optional(Name),
  emailName: t.Optional(EmailName),
  emailDomain: t.Optional(
    t.String({
      maxLength: 253,
      description: 'Name a verified domain. The default is the domain of the service.',
    }),
  ),
  scopes: t.Optional(ScopeList),
  payTo: t.Optional(PayTo),
  paymentsEnabled: t.Optional(t.Boolean()),
})

const DisplayName = t.Union([Name, t.Null()], {
  error: `be one line of 1 to ${NAME_MAX_LENGTH} characters, or null for the name of the project`,
  description: 'The From header of mail shows this name. Null means the name of the project.',
})

const SendPolicy = t.Union(
  SEND_POLICIES.map((one) => t.Literal(one)),
  {
    description:
      'With `free`, mail leaves at once. With `approve`, each mail waits for the owner. With `approve-new`, the first mail to a ' +
      'recipient waits for the owner.',
  },
)
const APPROVAL_HOURS_MAX = 30 * 24
const ApproverEmail = t.Union([t.String({ maxLength: 254 }), t.Null()], {
  error: 'be an email address or null',
  description:
    'The owner gets a link at this address for each mail that waits. Null means that nobody gets a link.',
})
const ApprovalHours = t.Integer({
  minimum: 1,
  maximum: APPROVAL_HOURS_MAX,
  description: 'A waiting mail expires after these hours if nobody decides.',
})

const OWN_ADDRESSES_MAX = 50
const OwnAddresses = t.Array(Address, {
  maxItems: OWN_ADDRESSES_MAX,
  uniqueItems: true,
  error: `be a list of at most ${OWN_ADDRESSES_MAX} addresses, each once`,
  description:
    'The seller itself pays from these addresses. Their payments do not count as income.',
})

export const UpdateBody = t.Object({
  name: t.Optional(Name),
  displayName: t.Optional(DisplayName),
  addScopes: t.Optional(ScopeList),
  removeScopes: t.Optional(ScopeList),
  payTo: t.Optional(PayTo),
  ownAddresses: t.Optional(OwnAddresses),
  paymentsEnabled: t.Optional(t.Boolean()),
  limits: t.Optional(Limits),
  sendPolicy: t.Optional(SendPolicy),
  approverEmail: t.Optional(ApproverEmail),
  approvalHours: t.Optional(ApprovalHours),
  retention: t.Optional(RetentionInput),
})

export const Params = t.Object({ projectId: t.String({ minLength: 1, maxLength: 100 }) })

const ProjectSchema = t.Object({
  projectId: t.String(),
  identityId: t.String({ description: 'This field repeats `projectId`.' }),
  name: t.String(),
  displayName: t.Union([t.String(), t.Null()], {
    description:
      'The From header shows this name, if the name differs from the name of the project.',
  }),
  type: t.Literal('INBOX'),
  purpose: Purpose,
  emailAddress: t.String(),
  email: t.String({ description: 'This field repeats `emailAddress`.' }),
  scopes: t.Array(t.String()),
  apiKeyPrefix: t.String(),
  payTo: t.Union([t.String(), t.Null()]),
  ownAddresses: t.Array(t.String(), { description: 'The addresses are in lower case.' }),
  paymentsEnabled: t.Boolean(),
  sendPolicy: SendPolicy,
  approverEmail: ApproverEmail,
  approvalHours: ApprovalHours,
  usage: t.Object({
    storageBytes: t.Integer({ description: 'The mail of the project has this many bytes.' }),
    dailySettlements: t.Integer({
      description: 'The project claimed this many payments on this UTC day.',
    }),
    dailyGas: t.Integer({
      description:
        'This gas was used on this UTC day by the transactions of the project. Reverted transactions count too.',
    }),
    dailyPurseGas: t.Integer({
      description:
        'The purse of the project signed cancellations and transfers for this gas on this UTC day. The limit `dailyGas` applies to this gas too.',
    }),
    dailyTextBytes: t.Integer({
      description: 'The service read this many bytes of attachments on this UTC day.',
    }),
    dailyTextSeconds: t.Integer({
      description: 'The reading of the attachments took this many seconds of CPU time.',
    }),
  }),
  limits: t.Object({
    storageBytes: t.Union([t.Integer(), t.Null()], {
      description: 'Null means that there is no limit.',
    }),
    dailySettlements: t.Union([t.Integer(), t.Null()], {
      description: 'Null means that there is no limit.',
    }),
    dailyGas: t.Union([t.Integer(), t.Null()], {
      description: 'Null means that there is no limit.',
    }),
    dailyTextBytes: t.Union([t.Integer(), t.Null()], {
      description: 'Null means that there is no limit.',
    }),
    dailyTextSeconds: t.Union([t.Integer(), t.Null()], {
      description: 'Null means that there is no limit.',
    }),
  }),
  retention: RetentionSchema,
  usageCount: t.Integer({
    description: 'The key has sent this many requests. The number can be a few seconds old.',
  }),
  lastUsedAt: t.Union([Time, t.Null()]),
  createdAt: Time,
})

const CreatedProject = t.Composite([
  ProjectSchema,
  t.Object({ rawKey: t.String({ description: 'Only this answer shows the project key.' }) }),
])

const EXAMPLE_PROJECT = {
  projectId: 'prj_0a1b2c3d4e5f60718293a4b5',
  identityId: 'prj_0a1b2c3d4e5f60718293a4b5',
  name: 'Buyer bot',
  displayName: null,
  type: 'INBOX',
  purpose: 'SELLER',
  emailAddress: 'buyer-bot@mail.example.com',
  email: 'buyer-bot@mail.example.com',
  scopes: [...PROJECT_SCOPES],
  apiKeyPrefix: 'loid-0123456789ab',
  payTo: null,
  ownAddresses: [],
  paymentsEnabled: false,
  sendPolicy: 'free',
  approverEmail: null,
  approvalHours: 72,
  usage: {
    storageBytes: 48_213,
    dailySettlements: 3,
    dailyGas: 258_000,
    dailyPurseGas: 80_000,
    dailyTextBytes: 31_204,
    dailyTextSeconds: 1,
  },
  limits: {
    storageBytes: 10_737_418_240,
    dailySettlements: 100_000,
    dailyGas: 10_000_000_000,
    dailyTextBytes: 1_073_741_824,
    dailyTextSeconds: 3_600,
  },
  retention: {
    mail: null,
    rawMail: 30,
    deliveries: 90,
    logs: 90,
    idempotencyKeys: 1,
    paymentDetails: null,
  },
  usageCount: 12,
  lastUsedAt: '2026-01-05T09:41:12.345Z',
  createdAt: '2026-01-05T09:30:00.000Z',
}

export const ROTATED = 'The previous key no longer works. Keep this one: it is not shown again.'

const describe = { tag: 'Platform', access: 'platform:manage' } as const
const whole = { description: 'The project.', schema: ProjectSchema, example: EXAMPLE_PROJECT }
const NOT_FOUND = { 404: 'Project not found' }

export const createOperation = operation({
  ...describe,
  summary: 'Create a project with its inbox and key',
  requestExample: { name: 'Buyer bot', emailName: 'buyer-bot' },
  success: {
    status: 201,
    description: 'The project and, this once, its key.',
    schema: CreatedProject,
    example: { ...EXAMPLE_PROJECT, rawKey: `loid-${'0'.repeat(64)}` },
  },
  errors: { 409: 'The address is taken, now or by a project that was deleted' },
})

export const ListQuery = t.Composite([
  PageQuery,
  OrderQuery,
  RangeQuery,
  t.Object({
    q: PartOf('the name or the inbox address'),
    payments: t.Optional(
      t.Union([t.Literal('on'), t.Literal('off')], {
        description: 'True means that the project takes payments.',
      }),
    ),
  }),
])

export const listOperation = (collection: string) =>
  operation({
    ...describe,
    summary: 'List projects, newest first',
    success: {
      status: 200,
      description: 'One page of projects.',
      schema: t.Object({
        [collection]: t.Array(ProjectSchema),
        count: t.Integer(),
        nextPageToken: t.Optional(t.String()),
      }),
      example: { [collection]: [EXAMPLE_PROJECT], count: 1 },
    },
  })

export const getOperation = operation({
  ...describe,
  summary: 'Get a project',
  success: { status: 200, ...whole },
  errors: NOT_FOUND,
})

export const updateOperation = operation({
  ...describe,
  summary: 'Change a project: name, scopes, payments, approval of mail, retention',
  description: 'A scope in both addScopes and removeScopes is removed.',
  requestExample: { removeScopes: ['vault:write'] },
  success: { status: 200, ...whole },
  errors: NOT_FOUND,
})

export const rotateOperation = operation({
  ...describe,
  summary: 'Replace the key of a project',
  success: {
    status: 200,
    description: 'The new key. The old one is refused from now on.',
    schema: t.Object({ rawKey: t.String(), apiKeyPrefix: t.String(), message: t.String() }),
    example: {
      rawKey: `loid-${'0'.repeat(64)}`,
      apiKeyPrefix: 'loid-000000000000',
      message: ROTATED,
    },
  },
  errors: NOT_FOUND,
})

export const deleteOperation = operation({
  ...describe,
  summary: 'Delete a project',
  description:
    'Its key is dead at once and its mail is removed. Its address is never given out again.',
  success: { status: 204, description: 'The project is gone.' },
  errors: { ...NOT_FOUND, 409: 'Its purse holds or awaits money' },
})
