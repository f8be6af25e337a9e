import { Component, type ComponentChildren } from "preact";
import { words } from "../words";

/** An error boundary: a part that fails to render does not affect the rest. */
export class Boundary extends Component<{ children: ComponentChildren }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static override getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? <p class="notice bad">{words.notShown}</p> : this.props.children;
  }
}
