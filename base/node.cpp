#include "base/node.hpp"

#include <algorithm>

namespace forerun {

const Node* Node::find(std::string_view key) const {
  const auto at = std::find_if(entries.begin(), entries.end(),
                               [&](const Entry& entry) { return entry.key == key; });
  return at == entries.end() ? nullptr : &at->value;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(std::as_const(*this).find(key));
}

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kScalar:
      return "'" + (node.scalar.size() > 60 ? node.scalar.substr(0, 60) + "..." : node.scalar) + "'";
    case Node::Kind::kSequence:
      return "a list";
    case Node::Kind::kMapping:
      return "a mapping";
  }
  return "";
}

void set_dotted(Node& root, std::string_view dotted, Node value) {
  const std::size_t dot = dotted.find('.');
  const std::string head(dotted.substr(0, dot));
  if (head.empty()) {
    throw InputError(value.mark.place(), std::string(dotted), "an empty part in a dotted key");
  }
  if (root.kind == Node::Kind::kNull) root.kind = Node::Kind::kMapping;
  if (root.kind != Node::Kind::kMapping) {
    throw InputError(value.mark.place(), std::string(dotted),
                     "cannot be set inside " + describe(root) + "; a mapping is wanted there");
  }
  Node* child = root.find(head);
  if (child == nullptr) {
    root.entries.push_back({head, value.mark, Node{}});
    child = &root.entries.back().value;
  }
  if (dot != std::string_view::npos) {
    set_dotted(*child, dotted.substr(dot + 1), std::move(value));
  } else {
    *child = std::move(value);
  }
}

}  // namespace forerun
