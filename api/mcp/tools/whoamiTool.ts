import { Type as t } from '@sinclair/typebox'
import { IdentitySchema, projectIdentity } from '../../account/whoamiRoutes.ts'
import { defineTool, READS, STRICT } from './tool.ts'

/** Returns the identity of the caller's API key. */
export const whoamiTool = defineTool({
  name: 'whoami',
  title: 'Who am I',
  description:
    'Answers the project of this connection: its name, its email address, its scopes, and its wallet. Use it once at the start, and when an expected tool is not listed: the list holds only tools that these scopes allow. Example: {}',
  scope: 'key',
  input: t.Object({}, STRICT),
  output: IdentitySchema,
  hints: READS,
  async run({ services, caller }) {
    const identity = {
      ...(await projectIdentity(services.pool, caller)),
      // The tool result lists the scopes of the connected app, which can have fewer scopes than the project's API key.
      scopes: [...caller.scopes],
    }
    return {
      data: identity,
      text: `Project ${identity.projectId}, mail address ${identity.email}, scopes: ${identity.scopes.join(', ') || 'none'}.`,
    }
  },
})
