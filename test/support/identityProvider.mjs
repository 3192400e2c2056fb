/** Runs a real OpenID provider (oidc-provider) in a process of Node, because the package supports only Node. */
import Provider from 'oidc-provider'

const [port = '', redirectUri = '', secret = ''] = process.argv.slice(2)

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'purser',
      client_secret: secret,
      redirect_uris: [redirectUri],
      token_endpoint_auth_method: 'client_secret_post',
    },
  ],
  pkce: { required: () => true },
})
provider.listen(Number(port), '127.0.0.1', () => {
  process.stdout.write('the provider listens\n')
})
