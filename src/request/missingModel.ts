import { RouterError } from "#src/errors/routerError.ts";

export function missingModel(problem: string): RouterError {
  return new RouterError("missing_model", `The request's model ${problem}.`, {
    fault: "client",
    httpStatus: 400,
    retryable: false,
    param: "model",
  });
}
