import type { Queryable } from '../../db.ts'
import { deleteInBatches } from '../../deleteInBatches.ts'

/** Selects the OAuth grants that ended at least a period ago. The index `oauth_grants_end` covers the time. */
const endedBefore = (period: string) =>
  `coalesce(revoked_at, expires_at) < statement_timestamp() - interval '${period}'`

/**
 * Lists the steps that delete old rows of OAuth: requests for consent, authorization codes, tokens, ended grants,
 * client metadata documents and unused clients. Codes and tokens are deleted a day after their expiry, and tokens of an
 * ended grant earlier. The housekeeping runs each step on its own, so that a failed step stops no other.
 */
export const STALE_OAUTH: readonly ((db: Queryable) => Promise<void>)[] = [
  (db) =>
    deleteInBatches(db, 'oauth_requests', `expires_at < statement_timestamp() - interval '1 hour'`),
  (db) =>
    deleteInBatches(db, 'oauth_codes', `expires_at < statement_timestamp() - interval '1 day'`),
  (db) =>
    deleteInBatches(db, 'oauth_tokens', `expires_at < statement_timestamp() - interval '1 day'`),
  (db) =>
    deleteInBatches(
      db,
      'oauth_tokens',
      // Because of the array function in this condition, PostgreSQL finds the OAuth tokens by the ids of their OAuth
      // grants. Otherwise it would read all tokens.
      `grant_id = any (array(select id from oauth_grants where ${endedBefore('0')}))`,
    ),
  (db) =>
    deleteInBatches(
      db,
      'oauth_grants',
      // This step of the housekeeping skips an OAuth grant that still has tokens. Otherwise one statement could delete
      // too many tokens together with the grant. The previous step deletes the tokens.
      `${endedBefore('30 days')} and not exists (select from oauth_tokens where grant_id = oauth_grants.id)`,
    ),
  (db) =>
    deleteInBatches(
      db,
      'oauth_client_documents',
      `wanted_at < statement_timestamp() - interval '7 days'`,
    ),
  (db) =>
    deleteInBatches(
      db,
      'oauth_clients',
      `used_at is null and created_at < statement_timestamp() - interval '1 day'`,
    ),
]
