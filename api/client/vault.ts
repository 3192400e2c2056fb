import { everyPage } from './everyPage.ts'
import type { CallOptions, Http } from './http.ts'
import type { Operations } from './operations.ts'

/** A credential as lists show it: without its secret. */
export type CredentialItem = Operations['getVault']['result']['credentials'][number]
/** A credential with its secret. */
export type Credential = Operations['getVaultByName']['result']

type ListQuery = NonNullable<Operations['getVault']['input']['query']>

/** Credentials, by name. */
export function vault(http: Http) {
  /** Without `limit`: all credentials, up to the size limit of an answer. */
  const list = (query: ListQuery = {}, options?: CallOptions) =>
    http.call('getVault', { query }, options)
  return {
    list,
    /** Every credential, newest first; iteration loads the pages. */
    all: (query: ListQuery = {}, options?: CallOptions) =>
      everyPage(
        (pageToken) => list({ ...query, pageToken }, options),
        (page) => page.credentials,
        query.pageToken,
      ),
    /** A credential with its secret, without a TOTP secret. Throws ExpiredError after its `expiresAt`. */
    get: (name: string, options?: CallOptions) =>
      http.call('getVaultByName', { path: { name } }, options),
    /** Stores a credential. It replaces a credential of that name completely. */
    put: (
      name: string,
      credential: Operations['putVaultByName']['input']['body'],
      options?: CallOptions,
    ) => http.call('putVaultByName', { path: { name }, body: credential }, options),
    /** Deletes a credential with all its versions permanently. */
    delete: (name: string, options?: CallOptions) =>
      http.call('deleteVaultByName', { path: { name } }, options),
    /** The current one-time code. */
    totp: (name: string, options?: CallOptions) =>
      http.call('getVaultByNameTotp', { path: { name } }, options),
    /** Takes a backup code; it is then used. Never retried after a lost answer: a retry would take another code. */
    takeBackupCode: (name: string, options?: CallOptions) =>
      http.call('postVaultByNameTotpBackup', { path: { name } }, options),
    listVersions: (name: string, options?: CallOptions) =>
      http.call('getVaultByNameVersions', { path: { name } }, options),
    getVersion: (name: string, version: number, options?: CallOptions) =>
      http.call('getVaultByNameVersionsByVersion', { path: { name, version } }, options),
    /** Makes an old version the newest. */
    restoreVersion: (name: string, version: number, options?: CallOptions) =>
      http.call('postVaultByNameVersionsByVersionRestore', { path: { name, version } }, options),
  }
}
