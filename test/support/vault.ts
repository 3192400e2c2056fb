/** The path of a credential, and of what lies under it. */
export const vaultPath = (name: string, rest = ''): string =>
  `/v0/vault/${encodeURIComponent(name)}${rest}`
