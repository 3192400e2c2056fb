/** The path of a credential, or of a resource below it. */
export const vaultPath = (name: string, rest = ''): string =>
  `/v0/vault/${encodeURIComponent(name)}${rest}`
