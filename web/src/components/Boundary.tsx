import { Component, type ComponentChildren } from "preact";
import { texts } from "../texts";

/** An error boundary: a part that fails to render does not affect the rest. */
export class Boundary extends Component<{ children: ComponentChildren }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static override getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? <p class="notice bad">{texts.notShown}</p> : this.props.children;
  }
}
