/** Lists the HTTP methods that a request with a secret may have. */
export const USE_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'] as const
export type UseMethod = (typeof USE_METHODS)[number]
