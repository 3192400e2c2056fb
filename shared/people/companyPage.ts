/**
 * Returns the page to which the company's identity provider redirects a person. The identity provider knows this page
 * as the registered redirect URI of this service.
 */
export const companyPage = (baseUrl: string): string =>
  `${baseUrl.replace(/\/$/, '')}/console/company`
