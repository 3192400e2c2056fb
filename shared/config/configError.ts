/** A setting that cannot be used. `message` has one line for each: the variable, then the rule for its value. */
export class ConfigError extends Error {}

/** A variable, and the rule that its value breaks. It never holds the value, which can be a key or hold a password. */
export type Fault = { variable: string; rule: string }

export const faultLine = ({ variable, rule }: Fault): string => `${variable}: ${rule}`
