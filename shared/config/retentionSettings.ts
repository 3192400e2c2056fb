import type { z } from 'zod'
import type { Retention } from '../retention.ts'
import type { variables } from './variables.ts'

/**
 * Holds the number of days for which the service keeps rows of each retention class. Null means that the default number
 * of days applies.
 */
export type RetentionSettings = Retention & {
  /**
   * Holds the number of days for which the operator keeps a backup. Null means that the operator has not set
   * BACKUP_RETENTION_DAYS.
   */
  backups: number | null
}

/** Reads the retention days from the settings. */
export const retentionSettings = (values: z.output<typeof variables>): RetentionSettings => ({
  mail: values.RETENTION_MAIL_DAYS ?? null,
  rawMail: values.RETENTION_RAW_MAIL_DAYS ?? null,
  deliveries: values.RETENTION_DELIVERIES_DAYS ?? null,
  logs: values.RETENTION_LOGS_DAYS ?? null,
  idempotencyKeys: values.RETENTION_IDEMPOTENCY_KEYS_DAYS ?? null,
  paymentDetails: values.RETENTION_PAYMENT_DETAILS_DAYS ?? null,
  backups: values.BACKUP_RETENTION_DAYS ?? null,
})
