/** The page to which the company's identity provider leads back: its registered redirect URI. */
export const companyPage = (baseUrl: string): string =>
  `${baseUrl.replace(/\/$/, '')}/console/company`
