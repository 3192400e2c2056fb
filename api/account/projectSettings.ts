/** Describes the settings of a project that the operator changes: limits and retention. */
import { Type as t } from '@sinclair/typebox'
import { RETENTION_CLASSES, type RetentionClass } from '../../shared/retention.ts'

/** Limits sizes to whole numbers of bytes that PostgreSQL and JSON can both store exactly. */
const BYTES_MAX = 2 ** 50
const COUNT_MAX = 2 ** 50
export const Limits = t.Object({
  storageBytes: t.Optional(
    t.Union([t.Integer({ minimum: 0, maximum: BYTES_MAX }), t.Null()], {
      error: "be a number of bytes, or null for the service's limit",
      description:
        'The project may store this many bytes of mail. Null means the limit of the service.',
    }),
  ),
  dailySettlements: t.Optional(
    t.Union([t.Integer({ minimum: 0, maximum: COUNT_MAX }), t.Null()], {
      error: "be a number of payments, or null for the service's limit",
      description:
        'The project may claim this many payments in a UTC day. Null means the limit of the service.',
    }),
  ),
  dailyGas: t.Optional(
    t.Union([t.Integer({ minimum: 0, maximum: COUNT_MAX }), t.Null()], {
      error: "be an amount of gas, or null for the service's limit",
      description:
        'The transactions of the project may use this much gas in a UTC day. Beyond this limit, nothing is claimed. Null means the limit of the service.',
    }),
  ),
  dailyTextBytes: t.Optional(
    t.Union([t.Integer({ minimum: 0, maximum: BYTES_MAX }), t.Null()], {
      error: "be a number of bytes, or null for the service's limit",
      description:
        'The service reads this many bytes of attachments in a UTC day. Other attachments wait for the next day. Null means the limit of the service.',
    }),
  ),
  dailyTextSeconds: t.Optional(
    t.Union([t.Integer({ minimum: 0, maximum: COUNT_MAX }), t.Null()], {
      error: "be a number of seconds, or null for the service's limit",
      description:
        'The reading of attachments may take this many seconds of CPU time in a UTC day. Null means the limit of the service.',
    }),
  ),
})

const Days = (name: RetentionClass) => {
  const { about, min, max } = RETENTION_CLASSES[name]
  return t.Optional(
    t.Union([t.Integer({ minimum: min, maximum: max }), t.Null()], {
      error: `be a number of days, ${min} to ${max}, or null for the service's`,
      description: `The project keeps ${about} for ${min} to ${max} days. Null means the setting of the service.`,
    }),
  )
}
export const RetentionInput = t.Object({
  mail: Days('mail'),
  rawMail: Days('rawMail'),
  deliveries: Days('deliveries'),
  logs: Days('logs'),
  idempotencyKeys: Days('idempotencyKeys'),
  paymentDetails: Days('paymentDetails'),
})

const KeptDays = (name: RetentionClass) =>
  t.Union([t.Integer(), t.Null()], {
    description: `The project keeps ${RETENTION_CLASSES[name].about} for this many days. Null means for ever.`,
  })
export const RetentionSchema = t.Object({
  mail: KeptDays('mail'),
  rawMail: KeptDays('rawMail'),
  deliveries: KeptDays('deliveries'),
  logs: KeptDays('logs'),
  idempotencyKeys: KeptDays('idempotencyKeys'),
  paymentDetails: KeptDays('paymentDetails'),
})
