import { Type as t } from '@sinclair/typebox'
import { IdentitySchema, projectIdentity } from '../account/whoami.ts'
import { defineTool, READS, STRICT } from './tool.ts'

/** Who the key acts as. */
export const whoamiTool = defineTool({
  name: 'whoami',
  title: 'Who am I',
  description:
    'Tells which project this connection acts as: its name, its email address, the scopes its key holds, and its wallet. Use it once at the start, and when a tool you expect is not listed: only tools whose scope the key holds are. Example: {}',
  scope: 'key',
  input: t.Object({}, STRICT),
  output: IdentitySchema,
  hints: READS,
  async run({ services, projectId }) {
    const identity = await projectIdentity(services.pool, projectId)
    return {
      data: identity,
      text: `Project ${identity.projectId}, mail address ${identity.email}, scopes: ${identity.scopes.join(', ') || 'none'}.`,
    }
  },
})
