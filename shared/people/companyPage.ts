/** Returns the page to which the company's identity provider redirects a person. It is our registered redirect URI. */
export const companyPage = (baseUrl: string): string =>
  `${baseUrl.replace(/\/$/, '')}/console/company`
