import { calendarTools } from './calendarTools.ts'
import { draftTools } from './draftTools.ts'
import { findTools } from './findTools.ts'
import { mailTools } from './mailTools.ts'
import { purseTools } from './purseTools.ts'
import { ruleTools } from './ruleTools.ts'
import { threadTools } from './threadTools.ts'
import type { Tool } from './tool.ts'
import { vaultTools } from './vaultTools.ts'
import { vaultUseTools } from './vaultUseTools.ts'
import { whoamiTool } from './whoamiTool.ts'

/** Lists every MCP tool in the order of the tool list. */
export const TOOLS: readonly Tool[] = [
  whoamiTool,
  ...mailTools,
  ...draftTools,
  ...findTools,
  ...threadTools,
  ...calendarTools,
  ...ruleTools,
  ...vaultTools,
  ...vaultUseTools,
  ...purseTools,
]
