import { everyPage } from '../everyPage.ts'
import type { CallOptions, Http } from '../http.ts'
import type { Operations } from '../operations.ts'

/** A credential as lists show it: without its secret. */
export type CredentialItem = Operations['getVault']['result']['credentials'][number]
/** A credential with its secret. */
export type Credential = Operations['getVaultByName']['result']

type ListQuery = NonNullable<Operations['getVault']['input']['query']>

/** The input that names a credential. A URL cannot have "." or ".." as a segment of its path: the query names them. */
const named = <More extends object>(name: string, more?: More) => {
  const isStep = name === '.' || name === '..'
  return {
    path: { name: isStep ? '-' : name, ...(more as More) },
    ...(isStep ? { query: { name } } : {}),
  }
}

/**
 * Credentials, by name.
 *
 * @example
 * await purser.vault.put('shop', { type: 'LOGIN', data: { username: 'ann', password: 'kept' } })
 * const { code } = await purser.vault.totp('shop')
 */
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
    get: (name: string, options?: CallOptions) => http.call('getVaultByName', named(name), options),
    /** Stores a credential. It replaces a credential of that name completely. */
    put: (
      name: string,
      credential: Operations['putVaultByName']['input']['body'],
      options?: CallOptions,
    ) => http.call('putVaultByName', { ...named(name), body: credential }, options),
    /** Deletes a credential with all its versions permanently. */
    delete: (name: string, options?: CallOptions) =>
      http.call('deleteVaultByName', named(name), options),
    /** The current one-time code. */
    totp: (name: string, options?: CallOptions) =>
      http.call('getVaultByNameTotp', named(name), options),
    /** Takes a backup code; it is then used. Never retried after a lost answer: a retry would take another code. */
    takeBackupCode: (name: string, options?: CallOptions) =>
      http.call('postVaultByNameTotpBackup', named(name), options),
    /** Changes who reads a credential, and where it may be used. A key may only narrow both. */
    protect: (
      name: string,
      protection: Operations['patchVaultByName']['input']['body'],
      options?: CallOptions,
    ) => http.call('patchVaultByName', { ...named(name), body: protection }, options),
    /**
     * Sends an HTTPS request with the secret filled in, and answers what came back, without the secret. A request is sent
     * at most once; give an `idempotencyKey` to ask again after a lost answer. `state: 'pending'`: read it with `getUse`.
     */
    use: (
      name: string,
      request: Operations['postVaultByNameUse']['input']['body']['request'],
      options?: CallOptions & { idempotencyKey?: string },
    ) => http.call('postVaultByNameUse', { ...named(name), body: { request } }, options),
    /** A use with its answer, for ten minutes after its end. Waits for the end. */
    getUse: (name: string, useId: string, options?: CallOptions) =>
      http.call('getVaultByNameUsesByUseId', named(name, { useId }), options),
    /** Signs with a key of the credential: HMAC-SHA256, Ed25519, or AWS Signature Version 4. */
    sign: (
      name: string,
      input: Operations['postVaultByNameSign']['input']['body'],
      options?: CallOptions,
    ) => http.call('postVaultByNameSign', { ...named(name), body: input }, options),
    listVersions: (name: string, options?: CallOptions) =>
      http.call('getVaultByNameVersions', named(name), options),
    getVersion: (name: string, version: number, options?: CallOptions) =>
      http.call('getVaultByNameVersionsByVersion', named(name, { version }), options),
    /** Makes an old version the newest. */
    restoreVersion: (name: string, version: number, options?: CallOptions) =>
      http.call('postVaultByNameVersionsByVersionRestore', named(name, { version }), options),
  }
}
