//! A server of the Model Context Protocol on stdin and stdout: agents look at captured regions, and try edits and flags on them.
//!
//! | module | what |
//! |---|---|
//! | [`tools`] | the tools: what they take, and the command that each stands for |
//! | [`schemas`] | what they answer |
//! | [`source`] | sources of the build |
//! | [`flags`] | flags that an agent may give |
//! | [`budget`] | what is left of the time and of the tries |
//! | [`command`] | one run of the command |

mod budget;
mod command;
mod flags;
mod schemas;
mod source;
mod tools;

pub use budget::Limits;

use anyhow::{Context, Result};
use budget::Budget;
use cere_format::store::Store;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::transport::stdio;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tools::{Call, Tool};

/// The server's instructions, which clients show to their models.
const INSTRUCTIONS: &str = "\
Regions are hot loops and functions of a C, C++ or Fortran program; a codelet is one captured execution of a region. `codelets` says what \
there is, `source`, `asm` and `counts` show a region. `try_patch` compiles an edit and runs it on captured memory, in turns with the code as \
captured: `verdict` says whether all memory that the region leaves is right, `ratio` is the time over that as captured. `reward` is 0 if a \
result is wrong, else how many times faster the region is at least; of several regions the lowest.";

/// Serves until stdin ends. `command`: the `cere` that does the work; `store`: what it works on.
pub fn serve(command: PathBuf, store: Store, limits: Limits) -> Result<()> {
    let server = Server {
        shared: Arc::new(Shared {
            command,
            store,
            budget: Mutex::new(Budget::new(limits)),
        }),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the server")?;
    let served = runtime.block_on(async {
        let running = server.serve(stdio()).await;
        let running = running.context("the client did not begin as the protocol says")?;
        running.waiting().await.context("the server ended")
    });
    // A reader of stdin that waits is not waited for.
    runtime.shutdown_background();
    served.map(drop)
}

struct Shared {
    command: PathBuf,
    store: Store,
    /// Held while something is measured: one thing at a time.
    budget: Mutex<Budget>,
}

#[derive(Clone)]
struct Server {
    shared: Arc<Shared>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("cere", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = Tool::ALL.iter().map(Tool::described);
        Ok(ListToolsResult::with_all_items(tools.collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::ALL.iter().find(|tool| tool.name == request.name) else {
            let why = format!("there is no tool {}", request.name);
            return Err(ErrorData::invalid_params(why, None));
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        let call: Call = serde_json::from_value(arguments)
            .map_err(|e| ErrorData::invalid_params(format!("{}: {e}", tool.name), None))?;
        let shared = self.shared.clone();
        let done = tokio::task::spawn_blocking(move || shared.answer(tool, &call)).await;
        let answer =
            done.unwrap_or_else(|e| Err(cere_catalogue::anyhow!(E9001, "the call was lost: {e}")));
        Ok(match answer {
            Ok(answer) => CallToolResult::structured(answer),
            Err(error) => {
                let text = cere_system::console::print::error(&error);
                // The code stands before the text, as it does on a terminal.
                let code = cere_catalogue::of(&error).map(|code| format!("[{code}] "));
                let text = code.unwrap_or_default() + &text;
                CallToolResult::error(vec![ContentBlock::text(text)])
            }
        }
        .into())
    }
}

impl Shared {
    /// What a tool answers.
    fn answer(&self, tool: &Tool, call: &Call) -> Result<Value> {
        let mut budget = self.budget.lock().unwrap_or_else(PoisonError::into_inner);
        let result = match tool.name {
            tools::SOURCE => source::source(&self.store, call)?,
            _ => {
                let prepared = tool.prepare(call, &self.store)?;
                budget.spend(tool.costs, |limit| {
                    command::run(&self.command, &self.store, &prepared.words, limit)
                })?
            }
        };
        let mut answer = json!({ "result": result, "left": budget.left() });
        if tool.tries {
            answer["reward"] = json!(reward(&answer["result"]));
        }
        Ok(answer)
    }
}

/// How many times faster the slowest of the tried regions is at least; 0 if a result is wrong, or nothing was timed.
fn reward(tried: &Value) -> f64 {
    let each = tried.as_array().into_iter().flatten().map(|tried| {
        let right = matches!(tried["verdict"].as_str(), Some("exact" | "tolerance"));
        let slowest = tried["interval"][1]
            .as_f64()
            .filter(|high| right && *high > 0.0);
        slowest.map_or(0.0, |high| 1.0 / high)
    });
    let lowest = each.fold(f64::INFINITY, f64::min);
    if lowest.is_finite() { lowest } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_results_have_no_reward() {
        let tried =
            |verdict: &str, high: f64| json!({ "verdict": verdict, "interval": [0.1, high] });
        assert_eq!(reward(&json!([tried("exact", 0.5)])), 2.0);
        assert_eq!(
            reward(&json!([tried("exact", 0.5), tried("tolerance", 0.8)])),
            1.25
        );
        assert_eq!(
            reward(&json!([tried("exact", 0.5), tried("different", 0.1)])),
            0.0
        );
        assert_eq!(reward(&json!([tried("partly", 0.5)])), 0.0);
        assert_eq!(
            reward(&json!([{ "verdict": "exact", "interval": null }])),
            0.0
        );
        assert_eq!(reward(&json!([])), 0.0);
    }
}
