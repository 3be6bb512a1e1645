# The first fix of the talk: the module is made once and kept.
require_relative "app"

module KeptHelpers
  def url_helpers(supports_path = true) = (@kept_helpers ||= {})[supports_path] ||= super
end
ActionDispatch::Routing::RouteSet.prepend(KeptHelpers)
