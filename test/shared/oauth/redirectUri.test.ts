/** Tests which redirect URIs an OAuth client may register. */
import { describe, expect, test } from 'bun:test'
import { isRegistered, redirectFault } from '../../../shared/oauth/redirectUri.ts'

describe('an OAuth client may register only a safe redirect URI', () => {
  test.each([
    'https://app.example/cb',
    'HTTPS://app.example:8443/cb?a=1',
    'http://127.0.0.1:3000/cb',
    'http://[::1]/cb',
    'http://localhost/cb',
    'cursor://anysphere.cursor-mcp/oauth/callback',
  ])('an OAuth redirect URI may be %s', (uri) => {
    expect(redirectFault(uri)).toBeNull()
    expect(isRegistered(uri, [uri])).toBe(true)
  })

  test.each([
    'https:app.example/cb',
    'https:/app.example/cb',
    'https:///app.example/cb',
    'http:localhost/cb',
  ])(
    'an OAuth redirect URI must not be %s, because a browser could resolve it at this service',
    (uri) => {
      expect(redirectFault(uri)).toBe('must have // and a host after its scheme')
      expect(isRegistered(uri, [uri])).toBe(false)
    },
  )
})
